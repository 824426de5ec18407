#include "worker/engine/device/cuda_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/out_of_memory.h"
#include "worker/engine/device/cuda_status.h"

namespace motley::engine {

absl::StatusOr<void*> CudaMemory::Allocate(int64_t bytes, void* stream) {
  try {
    return c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(static_cast<size_t>(bytes), static_cast<cudaStream_t>(stream));
  } catch (const c10::Error& error) {
    const std::string where = absl::StrCat(bytes, " bytes for a collective");
    return OutOfMemory(where, error);
  }
}

void CudaMemory::Free(void* room) { c10::cuda::CUDACachingAllocator::raw_delete(room); }

absl::StatusOr<void*> CudaMemory::AllocateHost(int64_t bytes) {
  void* room = nullptr;
  MOTLEY_RETURN_IF_ERROR(CudaStatus("pinned memory of the host", cudaMallocHost(&room, static_cast<size_t>(bytes))));
  return room;
}

void CudaMemory::FreeHost(void* room) { cudaFreeHost(room); }

absl::Status CudaMemory::CopyAsync(void* to, const void* from, int64_t bytes, void* stream) {
  // The direction follows from the addresses.
  return CudaStatus("a copy",
                    cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, static_cast<cudaStream_t>(stream)));
}

absl::StatusOr<bool> CudaMemory::IsDone(void* stream) {
  const cudaError_t error = cudaStreamQuery(static_cast<cudaStream_t>(stream));
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  MOTLEY_RETURN_IF_ERROR(CudaStatus("waiting for a stream", error));
  return true;
}

}  // namespace motley::engine
