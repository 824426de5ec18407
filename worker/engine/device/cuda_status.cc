#include "worker/engine/device/cuda_status.h"

#include <string>

#include "absl/strings/str_cat.h"

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

}  // namespace

absl::Status CudaStatus(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // one that lasts comes back with the next call; one that does not must not be taken for that call's
  return absl::Status(CodeOf(error), absl::StrCat(what, ": CUDA says '", cudaGetErrorString(error), "' (",
                                                  cudaGetErrorName(error), ")", Remedy(error)));
}

}  // namespace motley::engine
