// What transports and batches need of a device with a memory of its own: room on it and on the host, copies, and whether a
// stream has run dry. The CUDA back end implements it; tests have one over host memory.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace motley::engine {

// Thread-safe. A stream is a cudaStream_t.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Room on the device that is used on `stream` alone. RESOURCE_EXHAUSTED: it is full.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes, void* stream) = 0;
  // What the stream was given before may still use it.
  virtual void Free(void* room) = 0;
  // Room on the host that the device copies from and to beside its other work (pinned).
  virtual absl::StatusOr<void*> AllocateHost(int64_t bytes) = 0;
  virtual void FreeHost(void* room) = 0;
  // In `stream`; between any two of the device's and the host's.
  virtual absl::Status CopyAsync(void* to, const void* from, int64_t bytes, void* stream) = 0;
  // Whether the stream has done all that it was given. An error: of the work on it.
  virtual absl::StatusOr<bool> IsDone(void* stream) = 0;
};

}  // namespace motley::engine
