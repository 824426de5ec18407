// NCCL on a card of this machine, without libtorch's part for cards, which takes seconds to load. Private to the engine.
#pragma once

#include "absl/status/status.h"
#include "worker/engine/nccl/nccl_library.h"

namespace motley::engine {

// On the first card that has room for it; OK where there is none: no driver, no card, or all are full or held by others. To be
// called after PrepareNcclEnvironment by a process that ends soon: where it hangs, its thread stays. UNAVAILABLE: NCCL does not
// work here. FAILED_PRECONDITION: cards cannot be used. Both say the likely cause and what mends it.
absl::Status TryNcclOnACard(const NcclLibrary& nccl);

}  // namespace motley::engine
