// Whether NCCL works on a card: asked when a worker joins, long before a job depends on it. Private to the engine.
// docs/inside/nccl.md
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/engine/nccl/nccl_library.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {

// Makes a communicator of one rank on the thread's card, sums one number with it and gives it back. `stream`: the card's; each
// wait is as long as `limit` at most. UNAVAILABLE: what NCCL says, the machine's likely cause and its remedy.
absl::Status TryNccl(const NcclLibrary& nccl, DeviceMemory& memory, void* stream, absl::Duration limit);

// Calls it on a thread of its own, which is left behind where it does not end: a driver may hang where no limit reaches.
// UNAVAILABLE: it has not ended within the limit. What `call` uses must live until the process ends.
absl::Status EndsWithin(absl::Duration limit, const char* what, std::function<absl::Status()> call);

}  // namespace motley::engine
