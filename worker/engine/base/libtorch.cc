#include "worker/engine/base/libtorch.h"

#include <ATen/Version.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/build_info.h"

namespace motley::engine {
namespace {

// "..., TORCH_VERSION=2.11.0, ...", the last setting without a comma behind it.
std::string_view VersionIn(std::string_view says) {
  constexpr std::string_view kName = " TORCH_VERSION=";
  const size_t begin = says.find(kName);
  if (begin == std::string_view::npos) return "of no known version";
  says.remove_prefix(begin + kName.size());
  return says.substr(0, says.find_first_of(", \n"));
}

}  // namespace

absl::Status CheckLibtorch(std::string_view says) {
  const std::string_view found = VersionIn(says);
  if (found == LibtorchVersion()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this rank was compiled for libtorch ", std::string(LibtorchVersion()), " and found libtorch ", std::string(found),
      ": LD_LIBRARY_PATH or a moved folder leads to it; start the rank of that version, or unset LD_LIBRARY_PATH"));
}

absl::Status CheckLibtorch() { return CheckLibtorch(at::show_config()); }

}  // namespace motley::engine
