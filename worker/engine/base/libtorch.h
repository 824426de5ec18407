// Is the libtorch that this program found the one that it was compiled for? Two versions may lie on one machine, and what of
// another one resolves by name may be laid out otherwise in memory.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace motley::engine {

// FAILED_PRECONDITION with both versions. To be asked before anything is done with tensors.
absl::Status CheckLibtorch();
// `found`: the version of the library that was loaded.
absl::Status CheckLibtorch(std::string_view found);

}  // namespace motley::engine
