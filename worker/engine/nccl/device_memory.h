// What a communicator needs of a card besides NCCL: room for padded collectives, copies, and whether a stream has run dry. The
// CUDA back end implements it; tests have one over host memory.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace motley::engine {

// Thread-safe. A stream is a cudaStream_t.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Room that is used on `stream` alone. RESOURCE_EXHAUSTED: the card is full.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes, void* stream) = 0;
  // What the stream was given before may still use it.
  virtual void Free(void* room) = 0;
  virtual absl::Status CopyAsync(void* to, const void* from, int64_t bytes, void* stream) = 0;
  // Whether the stream has done all that it was given. An error: of the work on it.
  virtual absl::StatusOr<bool> IsDone(void* stream) = 0;
};

}  // namespace motley::engine
