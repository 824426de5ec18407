// A card's streams and events behind lanes/device_stream.h. Private to the CUDA back end.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

#include "worker/engine/lanes/device_stream.h"

namespace motley::engine {

// Events with times, used again and again: making one takes longer than recording it. Thread-safe.
class CudaEvents {
 public:
  ~CudaEvents();
  absl::StatusOr<cudaEvent_t> Take();
  void GiveBack(cudaEvent_t event);

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;  // guarded by mutex_
};

// A point that all the card's streams are timed from, laid on the host's clock.
class CudaOrigin {
 public:
  // The event goes back with it.
  CudaOrigin(CudaEvents& events, cudaEvent_t event, absl::Duration at) : events_(events), event_(event), at_(at) {}
  ~CudaOrigin() { events_.GiveBack(event_); }
  CudaOrigin(const CudaOrigin&) = delete;
  CudaOrigin& operator=(const CudaOrigin&) = delete;

  cudaEvent_t event() const { return event_; }
  absl::Duration at() const { return at_; }

 private:
  CudaEvents& events_;
  const cudaEvent_t event_;
  const absl::Duration at_;
};

// The streams of one card. Marks must not outlive it.
class CudaStreams {
 public:
  // One of PyTorch's pool: its allocator knows them.
  std::unique_ptr<DeviceStream> Make(bool high_priority);

 private:
  friend class CudaStream;
  // Waits for these streams and the default one, and times the card from there. Not for the whole card: a process of several
  // ranks has streams that wait for a rank which has not begun yet.
  absl::Status Settle();
  std::shared_ptr<const CudaOrigin> origin();

  CudaEvents events_;
  std::mutex mutex_;
  std::vector<cudaStream_t> made_;            // guarded by mutex_
  std::shared_ptr<const CudaOrigin> origin_;  // guarded by mutex_; after events_
};

}  // namespace motley::engine
