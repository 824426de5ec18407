// A device's stream: work that is enqueued by a thread which does not wait for it. Implemented by a back end (CUDA) and by tests.
// Torch-free: a stream knows nothing of what runs on it.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace motley::engine {

// A point of a stream: everything that was launched before it. Thread-safe.
class StreamMark {
 public:
  virtual ~StreamMark() = default;
  // Whether the stream has got there. An error of the device.
  virtual absl::StatusOr<bool> Reached() const = 0;
  // When that was, on CLOCK_MONOTONIC. Marks of one device differ by what the device measured; the clock is laid on them where
  // the step began. Once reached.
  virtual absl::Duration At() const = 0;
};
using StreamMarkPtr = std::shared_ptr<const StreamMark>;

// One thread at a time.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // Calls `work` with this stream as the thread's current one: what it enqueues comes behind all that was launched before. The
  // call may be made later and on another thread, in the order of launches; its error is a mark's then.
  virtual absl::Status Launch(std::function<absl::Status()> work) = 0;
  // The same on the caller's thread before it returns: for work that blocks a thread.
  virtual absl::Status Call(const std::function<absl::Status()>& work) = 0;
  // What is launched from here on starts after `mark`.
  virtual absl::Status Wait(StreamMarkPtr mark) = 0;
  virtual absl::StatusOr<StreamMarkPtr> Mark() = 0;
  // Before a step: blocks until the device has done all that it was given, outside of streams too.
  virtual absl::Status Settle() = 0;
  // Whether nothing runs on it: all has ended, or the device is broken.
  virtual bool Idle() const = 0;
  // What the device's libraries take: a cudaStream_t.
  virtual void* handle() const = 0;
};

}  // namespace motley::engine
