// Streams without a device: each is a thread that runs what it was given late and out of step with the others, by a seed. What a
// program does not order happens in another order now and then.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/lanes/device_stream.h"

namespace motley::engine {

// What the streams of one device share. Must outlive them and their marks' waits.
class FakeStreamDevice {
 public:
  explicit FakeStreamDevice(unsigned seed, absl::Duration longest_delay = absl::Microseconds(200))
      : random_(seed), longest_delay_(longest_delay) {}

  // `launches`: of a piece of work.
  std::unique_ptr<DeviceStream> MakeStream(int launches = 1);
  // An error of the device, as a kernel's that went wrong: every mark says it from now on.
  void Fail(const absl::Status& error) {
    std::lock_guard<std::mutex> lock(mutex_);
    error_.Update(error);
    changed_.notify_all();
  }
  // What has been launched on all streams and has not ended.
  int pending() {
    std::lock_guard<std::mutex> lock(mutex_);
    return pending_;
  }

 private:
  friend class FakeStream;
  friend class FakeMark;

  // Of all streams together. Whoever launches more stands until something has ended.
  static constexpr int kLaunchQueue = 1000;

  absl::Duration Delay() {
    std::lock_guard<std::mutex> lock(mutex_);
    // Most are short, some long: streams drift apart.
    const double part = std::uniform_real_distribution<double>(0, 1)(random_);
    return longest_delay_ * part * part * part;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937 random_;
  const absl::Duration longest_delay_;
  absl::Status error_;          // guarded by mutex_
  int pending_ = 0, held_ = 0;  // the same: launches; threads that stand
};

class FakeMark : public StreamMark {
 public:
  explicit FakeMark(FakeStreamDevice& device) : device_(device) {}

  absl::StatusOr<bool> Reached() const override {
    std::lock_guard<std::mutex> lock(device_.mutex_);
    if (!device_.error_.ok()) return device_.error_;
    return at_ != absl::InfiniteDuration();
  }
  absl::Duration At() const override {
    std::lock_guard<std::mutex> lock(device_.mutex_);
    return at_;
  }

 private:
  friend class FakeStream;
  FakeStreamDevice& device_;
  absl::Duration at_ = absl::InfiniteDuration();  // guarded by the device's mutex
};

class FakeStream : public DeviceStream {
 public:
  FakeStream(FakeStreamDevice& device, int launches) : device_(device), launches_(launches), thread_([this] { Loop(); }) {}
  ~FakeStream() override {
    {
      std::lock_guard<std::mutex> lock(device_.mutex_);
      over_ = true;
      device_.changed_.notify_all();
    }
    thread_.join();
  }

  absl::Status Launch(std::function<absl::Status()> work) override {
    Add(
        [launcher = std::this_thread::get_id(), work = std::move(work)] {
          launcher_ = launcher;
          return work();
        },
        launches_);
    return absl::OkStatus();
  }
  // Of a stream's thread: who launched the work that it runs. There a card's work is called.
  static std::thread::id Launcher() { return launcher_; }
  absl::Status Call(const std::function<absl::Status()>& work) override { return work(); }
  absl::Status Wait(StreamMarkPtr mark) override {
    Add([this, mark] {
      const auto& fake = static_cast<const FakeMark&>(*mark);
      std::unique_lock<std::mutex> lock(device_.mutex_);
      device_.changed_.wait(lock, [&] { return over_ || !device_.error_.ok() || fake.at_ != absl::InfiniteDuration(); });
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }
  absl::StatusOr<StreamMarkPtr> Mark() override {
    auto mark = std::make_shared<FakeMark>(device_);
    Add([this, mark] {
      std::lock_guard<std::mutex> lock(device_.mutex_);
      mark->at_ = absl::Nanoseconds(MonotonicNs());
      device_.changed_.notify_all();
      return absl::OkStatus();
    });
    return mark;
  }
  absl::Status Settle() override { return absl::OkStatus(); }
  bool Idle() const override {
    std::lock_guard<std::mutex> lock(device_.mutex_);
    return !runs_ && (queue_.empty() || !device_.error_.ok());
  }
  // Whether the caller is what the stream runs.
  bool IsCurrent() const { return std::this_thread::get_id() == thread_.get_id(); }
  void* handle() const override { return const_cast<FakeStream*>(this); }

 private:
  struct Item {
    std::function<absl::Status()> run;
    int launches;
  };

  void Add(std::function<absl::Status()> run, int launches = 1) {
    std::unique_lock<std::mutex> lock(device_.mutex_);
    // One after another: what finds room takes it.
    ++device_.held_;
    for (int left = launches; left > 0;) {
      device_.changed_.wait(lock,
                            [&] { return over_ || !device_.error_.ok() || device_.pending_ < FakeStreamDevice::kLaunchQueue; });
      const bool ends = over_ || !device_.error_.ok();
      const int taken = ends ? left : std::min(left, FakeStreamDevice::kLaunchQueue - device_.pending_);
      device_.pending_ += taken;
      left -= taken;
    }
    --device_.held_;
    queue_.push_back({std::move(run), launches});
    device_.changed_.notify_all();
  }
  // With the device's mutex.
  void Ended(const Item& item) {
    device_.pending_ -= item.launches;
    if (device_.held_ > 0) device_.changed_.notify_all();
  }
  void Loop() {
    for (;;) {
      Item item;
      {
        std::unique_lock<std::mutex> lock(device_.mutex_);
        device_.changed_.wait(lock, [this] { return over_ || !queue_.empty(); });
        if (over_) return;
        item = std::move(queue_.front());
        queue_.pop_front();
        if (!device_.error_.ok()) {  // nothing runs any more
          Ended(item);
          continue;
        }
        runs_ = true;
      }
      absl::SleepFor(device_.Delay());
      if (const absl::Status status = item.run(); !status.ok()) device_.Fail(status);
      std::lock_guard<std::mutex> lock(device_.mutex_);
      runs_ = false;
      Ended(item);
    }
  }

  static inline thread_local std::thread::id launcher_;

  FakeStreamDevice& device_;
  const int launches_;
  std::deque<Item> queue_;            // guarded by the device's mutex
  bool over_ = false, runs_ = false;  // the same
  std::thread thread_;
};

inline std::unique_ptr<DeviceStream> FakeStreamDevice::MakeStream(int launches) {
  return std::make_unique<FakeStream>(*this, launches);
}

}  // namespace motley::engine
