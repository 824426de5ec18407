// Whether a device has the memory for a microbatch: two whole steps of the assignment's program, with all that training holds, by
// a rank alone. On made-up tokens, without data, checkpoints or validation. Private to the engine. docs/inside/profiles.md
#pragma once

#include "absl/status/statusor.h"
#include "common/session/assignment.h"
#include "common/session/profile.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/link_clock.h"

namespace motley::engine {

// `assignment`: of one device. RESOURCE_EXHAUSTED (Fault::kMemory): it ran out. Errors of Executor::Run. May throw c10::Error.
absl::StatusOr<MemoryTrial> RunMemoryTrial(const RankAssignment& assignment, DeviceBackend& backend, RankHost& host,
                                           Communicator& communicator, LinkClock& links);

}  // namespace motley::engine
