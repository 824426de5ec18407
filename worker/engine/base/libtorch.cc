#include "worker/engine/base/libtorch.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/build_info.h"

// Of caffe2/core/common.h, which not every libtorch brings; all export it. at::show_config says the same, but asks for CUDA's
// hooks: PyTorch keeps the answer, and a process that asks before libtorch_cuda is opened never has a card.
namespace caffe2 {
const std::map<std::string, std::string>& GetBuildOptions();
}

namespace motley::engine {

absl::Status CheckLibtorch(std::string_view found) {
  if (found == LibtorchVersion()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this rank was compiled for libtorch ", std::string(LibtorchVersion()), " and found libtorch ", std::string(found),
      ": LD_LIBRARY_PATH or a moved folder leads to it; start the rank of that version, or unset LD_LIBRARY_PATH"));
}

absl::Status CheckLibtorch() {
  const std::map<std::string, std::string>& options = caffe2::GetBuildOptions();
  const auto version = options.find("TORCH_VERSION");
  return CheckLibtorch(version != options.end() ? version->second : "of no known version");
}

}  // namespace motley::engine
