// What was built, for `--version`.
#pragma once

#include <string>
#include <string_view>

namespace motley {

// "motley-worker 0.1.0, commit 1f2e3d4c5b, protocol motley.v1, libtorch 2.11.0". Commit "unknown": built without git's history;
// "-dirty": with changes. Libtorch is what motley-rank of this build uses; "none" where it was not built.
std::string BuildInfo(std::string_view program);

// "2.11.0", or "none".
std::string_view LibtorchVersion();

}  // namespace motley
