#include "worker/kernel_compiler/nvrtc_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley::kernel_compiler {
namespace {

constexpr char kRemedy[] = "; NVRTC is in the packages nvidia-cuda-nvrtc-cu12 and nvidia-cuda-nvrtc of PyPI";

std::vector<std::string> Fill(void* library, NvrtcApi& api) {
  std::vector<std::string> missing;
  const auto find = [&]<typename Function>(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) missing.push_back(name);
  };
  find("nvrtcVersion", api.nvrtcVersion);
  find("nvrtcGetErrorString", api.nvrtcGetErrorString);
  find("nvrtcGetNumSupportedArchs", api.nvrtcGetNumSupportedArchs);
  find("nvrtcGetSupportedArchs", api.nvrtcGetSupportedArchs);
  find("nvrtcCreateProgram", api.nvrtcCreateProgram);
  find("nvrtcDestroyProgram", api.nvrtcDestroyProgram);
  find("nvrtcAddNameExpression", api.nvrtcAddNameExpression);
  find("nvrtcCompileProgram", api.nvrtcCompileProgram);
  find("nvrtcGetLoweredName", api.nvrtcGetLoweredName);
  find("nvrtcGetProgramLogSize", api.nvrtcGetProgramLogSize);
  find("nvrtcGetProgramLog", api.nvrtcGetProgramLog);
  find("nvrtcGetCUBINSize", api.nvrtcGetCUBINSize);
  find("nvrtcGetCUBIN", api.nvrtcGetCUBIN);
  find("nvrtcGetPTXSize", api.nvrtcGetPTXSize);
  find("nvrtcGetPTX", api.nvrtcGetPTX);
  return missing;
}

}  // namespace

absl::StatusOr<NvrtcLibrary> OpenNvrtc(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::FailedPreconditionError(absl::StrCat("NVRTC cannot be opened: ", dlerror(), kRemedy));
  NvrtcLibrary opened;
  const std::vector<std::string> missing = Fill(library, opened.api);
  if (!missing.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(path, " lacks ", absl::StrJoin(missing, ", "), kRemedy));
  }
  int major = 0, minor = 0, count = 0;
  nvrtcResult result = opened.api.nvrtcVersion(&major, &minor);
  if (result == NVRTC_SUCCESS) result = opened.api.nvrtcGetNumSupportedArchs(&count);
  if (result == NVRTC_SUCCESS) {
    opened.capabilities.resize(static_cast<size_t>(count));
    result = opened.api.nvrtcGetSupportedArchs(opened.capabilities.data());
  }
  if (result != NVRTC_SUCCESS) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " does not say what it compiles for: ", opened.api.nvrtcGetErrorString(result), kRemedy));
  }
  opened.name = absl::StrCat("NVRTC ", major, ".", minor);
  return opened;
}

}  // namespace motley::kernel_compiler
