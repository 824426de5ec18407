// A device's memory on the host, whose copies run in fake streams: late, and in the order of the stream alone.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/memory_shortage.h"
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
    if (bytes > most_host_bytes_) {
      return WithMemoryShortage(absl::ResourceExhaustedError("the driver pins no more"),
                                {.tier = MemoryTier::kHost, .held_bytes = most_host_bytes_, .asked_bytes = bytes});
    }
    void* const room = Take(bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    host_rooms_[static_cast<char*>(room)] = bytes;
    return room;
  }
  void FreeHost(void* room) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      host_rooms_.erase(static_cast<char*>(room));
    }
    GiveBack(room);
  }
  absl::Status CopyAsync(void* to, const void* from, int64_t bytes, void* stream) override {
    ++copies_;
    const auto copy = [to, from, bytes] {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      return absl::OkStatus();
    };
    auto& of_device = *static_cast<FakeStream*>(stream);
    if (of_device.IsCurrent()) return copy();  // work that the stream runs is in its order already
    if (IsOnHost(to) || IsOnHost(from)) return of_device.Launch(copy);
    // On the device: into and out of the room of an NCCL call. In the fake's calls their thread stands for the stream
    // (fake_nccl.h), so it does here.
    while (!of_device.Idle()) std::this_thread::yield();
    return copy();
  }
  absl::StatusOr<bool> IsDone(void* stream) override { return static_cast<FakeStream*>(stream)->Idle(); }

  // Asked whether the device has work. Before anything is copied.
  void set_busy(std::function<bool()> busy) { busy_ = std::move(busy); }
  // Of one room on the host, for a driver that refuses more.
  void set_most_host_bytes(int64_t bytes) { most_host_bytes_ = bytes; }
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

  bool IsOnHost(const void* place) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto behind = host_rooms_.upper_bound(static_cast<char*>(const_cast<void*>(place)));
    if (behind == host_rooms_.begin()) return false;
    const auto& [room, bytes] = *std::prev(behind);
    return place < room + bytes;
  }

  std::function<bool()> busy_;
  int64_t most_host_bytes_ = int64_t{1} << 40;
  mutable std::mutex mutex_;
  std::map<char*, int64_t> host_rooms_;  // guarded by mutex_: bytes, by where they begin
  std::atomic<int> live_{0}, copies_{0};
};

}  // namespace motley::engine
