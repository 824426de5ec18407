// A device's memory on the host, whose copies run in fake streams: late, and in the order of the stream alone.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/worker/engine/lanes/fake_streams.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {

// Streams are those of FakeStreamDevice.
class FakeDeviceMemory : public DeviceMemory {
 public:
  // A driver may wait for all that the device was given: in a step that could be for ever. So all room is made before.
  absl::StatusOr<void*> Allocate(int64_t bytes, void*) override {
    MOTLEY_RETURN_IF_ERROR(AwaitIdle());
    return Take(bytes);
  }
  void Free(void* room) override { GiveBack(room); }
  absl::StatusOr<void*> AllocateHost(int64_t bytes) override {
    MOTLEY_RETURN_IF_ERROR(AwaitIdle());
    return Take(bytes);
  }
  void FreeHost(void* room) override { GiveBack(room); }
  absl::Status CopyAsync(void* to, const void* from, int64_t bytes, void* stream) override {
    ++copies_;
    const auto copy = [to, from, bytes] {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      return absl::OkStatus();
    };
    auto& of_device = *static_cast<FakeStream*>(stream);
    return of_device.IsCurrent() ? copy() : of_device.Launch(copy);  // work that the stream runs is in its order already
  }
  absl::StatusOr<bool> IsDone(void* stream) override { return static_cast<FakeStream*>(stream)->Idle(); }

  // Asked whether the device has work. Before anything is copied.
  void set_busy(std::function<bool()> busy) { busy_ = std::move(busy); }
  int live() const { return live_; }  // pieces of room that nobody has given back
  int copies() const { return copies_; }

 private:
  absl::Status AwaitIdle() {
    // A stream whose last mark was seen has yet to put its work away.
    const absl::Time until = absl::Now() + absl::Milliseconds(200);
    while (busy_ && busy_()) {
      if (absl::Now() > until) return absl::InternalError("room is made while the device has work");
      std::this_thread::yield();
    }
    return absl::OkStatus();
  }
  void* Take(int64_t bytes) {
    ++live_;
    return std::malloc(static_cast<size_t>(bytes));
  }
  void GiveBack(void* room) {
    --live_;
    std::free(room);
  }

  std::function<bool()> busy_;
  std::atomic<int> live_{0}, copies_{0};
};

}  // namespace motley::engine
