// A card's memory behind transport/device_memory.h: room from PyTorch's allocator, host memory that the runtime pins. Private to
// the CUDA back end.
#pragma once

#include "worker/engine/transport/device_memory.h"
#include "worker/engine/transport/pinned_memory.h"

namespace motley::engine {

class CudaMemory : public DeviceMemory {
 public:
  CudaMemory();
  absl::StatusOr<void*> Allocate(int64_t bytes, void* stream) override;
  void Free(void* room) override;
  absl::StatusOr<void*> AllocateHost(int64_t bytes) override;
  void FreeHost(void* room) override;
  absl::Status CopyAsync(void* to, const void* from, int64_t bytes, void* stream) override;
  absl::StatusOr<bool> IsDone(void* stream) override;

 private:
  PinnedMemory pinned_;
};

}  // namespace motley::engine
