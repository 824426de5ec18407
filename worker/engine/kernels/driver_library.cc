#include "worker/engine/kernels/driver_library.h"

#include <dlfcn.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley::engine {
namespace {

// The names of those that are not there.
std::vector<std::string> Fill(void* library, DriverApi& api) {
  std::vector<std::string> missing;
  const auto find = [&]<typename Function>(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) missing.push_back(name);
  };
  find("cuInit", api.cuInit);
  find("cuDriverGetVersion", api.cuDriverGetVersion);
  find("cuGetErrorName", api.cuGetErrorName);
  find("cuDeviceGet", api.cuDeviceGet);
  find("cuDeviceGetAttribute", api.cuDeviceGetAttribute);
  find("cuDevicePrimaryCtxRetain", api.cuDevicePrimaryCtxRetain);
  find("cuCtxGetCurrent", api.cuCtxGetCurrent);
  find("cuCtxSetCurrent", api.cuCtxSetCurrent);
  find("cuModuleLoadData", api.cuModuleLoadData);
  find("cuModuleUnload", api.cuModuleUnload);
  find("cuModuleGetFunction", api.cuModuleGetFunction);
  find("cuLaunchKernel", api.cuLaunchKernel);
  return missing;
}

}  // namespace

absl::StatusOr<DriverLibrary> OpenDriver(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::FailedPreconditionError(absl::StrCat("no NVIDIA driver: ", dlerror()));
  DriverLibrary opened;
  if (const std::vector<std::string> missing = Fill(library, opened.api); !missing.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver ", name, " lacks ", absl::StrJoin(missing, ", "), ": install a newer one"));
  }
  CUresult result = opened.api.cuInit(0);
  if (result == CUDA_SUCCESS) result = opened.api.cuDriverGetVersion(&opened.version);
  if (const absl::Status status = DriverStatus(opened.api, "starting the driver", result); !status.ok()) {
    return absl::FailedPreconditionError(status.message());
  }
  return opened;
}

absl::Status DriverStatus(const DriverApi& api, const std::string& what, CUresult result) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  if (api.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an error without a name";
  return absl::InternalError(absl::StrCat(what, ": the NVIDIA driver says ", name, " (", static_cast<unsigned>(result), ")"));
}

}  // namespace motley::engine
