#include "worker/engine/device/cuda_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

absl::StatusCode CodeOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorDevicesUnavailable:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

const char* Remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "; the driver is older than this build's CUDA: install a newer driver";
    case cudaErrorNoKernelImageForDevice:
      return "; this build's libtorch has no kernels for the card: `./run setup --libtorch 2.7.1` makes one for older cards";
    case cudaErrorDevicesUnavailable:
      return "; another process holds the card in exclusive mode: `nvidia-smi -c DEFAULT` lets them share it";
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      return "; no such card is visible to this process";
    default:
      return "";
  }
}

// Of both: 13000 is 13.0.
std::string CudaVersion(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

}  // namespace

absl::Status CudaStatus(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // one that lasts comes back with the next call; one that does not must not be taken for that call's
  return absl::Status(CodeOf(error), absl::StrCat(what, ": CUDA says '", cudaGetErrorString(error), "' (",
                                                  cudaGetErrorName(error), ")", Remedy(error)));
}

absl::Status CheckDriver() {
  int driver = 0, runtime = 0;
  MOTLEY_RETURN_IF_ERROR(CudaStatus("asking for the driver", cudaDriverGetVersion(&driver)));
  MOTLEY_RETURN_IF_ERROR(CudaStatus("asking for CUDA's version", cudaRuntimeGetVersion(&runtime)));
  if (driver == 0)
    return absl::FailedPreconditionError("there is no NVIDIA driver on this machine; install one, or leave the card out");
  // A newer minor version of the same CUDA runs on an older driver.
  if (driver / 1000 >= runtime / 1000) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the NVIDIA driver runs CUDA ", CudaVersion(driver), ", this build needs ",
                                                    CudaVersion(runtime),
                                                    "; install a newer driver, or a rank for the older one: "
                                                    "`./run setup --libtorch 2.7.1`"));
}

}  // namespace motley::engine
