#include "worker/engine/device/cuda_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/out_of_memory.h"
#include "worker/engine/device/cuda_status.h"

namespace motley::engine {

CudaMemory::CudaMemory()
    : pinned_({[](void* begin, int64_t bytes) {
                 return CudaStatus("pinning memory of the host",
                                   cudaHostRegister(begin, static_cast<size_t>(bytes), cudaHostRegisterDefault));
               },
               [](void* begin) { cudaHostUnregister(begin); }}) {}

absl::StatusOr<void*> CudaMemory::Allocate(int64_t bytes, void* stream) {
  try {
    return c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(static_cast<size_t>(bytes), static_cast<cudaStream_t>(stream));
  } catch (const c10::Error& error) {
    const std::string where = absl::StrCat(bytes, " bytes for a collective");
    return OutOfMemory(where, error);
  }
}

void CudaMemory::Free(void* room) { c10::cuda::CUDACachingAllocator::raw_delete(room); }

absl::StatusOr<void*> CudaMemory::AllocateHost(int64_t bytes) { return pinned_.Allocate(bytes); }

void CudaMemory::FreeHost(void* room) { pinned_.Free(room); }

absl::Status CudaMemory::CopyAsync(void* to, const void* from, int64_t bytes, void* stream) {
  char* const there = static_cast<char*>(to);
  const char* const here = static_cast<const char*>(from);
  for (int64_t part = 0, done = 0; done < bytes; done += part) {
    part = pinned_.OfOneCopy(there + done, here + done, bytes - done);
    // The direction follows from the addresses.
    MOTLEY_RETURN_IF_ERROR(CudaStatus("a copy", cudaMemcpyAsync(there + done, here + done, static_cast<size_t>(part),
                                                                cudaMemcpyDefault, static_cast<cudaStream_t>(stream))));
  }
  return absl::OkStatus();
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
