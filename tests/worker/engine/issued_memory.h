// What a card's caching allocator would count where tensors are on the host and streams are threads (fake_card.h). A card's
// work allocates and frees when it is launched, ahead of the device; a block that another stream has used too is freed when that
// stream has done what it was given before the last handle was dropped. A launch counts as one moment: what other lanes launch
// in its midst comes before or behind it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "worker/engine/base/memory.h"
#include "worker/engine/lanes/device_stream.h"

namespace motley::engine {

// Orders launches, ends and changes of bytes by one count. What work does when its stream runs it counts as done at its launch.
class IssuedMemory : public MemoryAccount {
 public:
  // A launch on a stream; the number is for Run. Launches of one stream are in order.
  size_t Launched(size_t stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    works_.push_back({stream, ++now_, kNever});
    return works_.size() - 1;
  }
  // On the stream's thread.
  absl::Status Run(size_t work, const std::function<absl::Status()>& run) {
    running_ = {this, work};
    absl::Status status = run();
    running_ = {};
    std::lock_guard<std::mutex> lock(mutex_);
    works_[work].ended = ++now_;
    return status;
  }

  void Made(const void* block, int64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    changes_.push_back({Here(), bytes, {}});
    live_[block];
  }
  void Freed(const void* block, int64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    changes_.push_back({Here(), -bytes, std::exchange(live_[block], {})});
    live_.erase(block);
  }
  // `stream` has been given work that uses it.
  void Use(const void* block, size_t stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = live_.find(block); found != live_.end()) found->second.insert(stream);
  }

  // The device has done all that it was given.
  void BeginSteps() {
    std::lock_guard<std::mutex> lock(mutex_);
    works_.clear();
    changes_.clear();
    before_ = current_bytes();
  }
  // Since BeginSteps.
  int64_t PeakAsIssued() const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::tuple<int64_t, size_t, int64_t>> in_order;  // when, position, bytes
    for (size_t i = 0; i < changes_.size(); ++i) in_order.emplace_back(WhenOf(changes_[i]), i, changes_[i].bytes);
    std::sort(in_order.begin(), in_order.end());
    int64_t bytes = before_, peak = before_;
    for (const auto& [when, position, change] : in_order) peak = std::max(peak, bytes += change);
    return peak;
  }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  struct Work {
    size_t stream;
    int64_t launched, ended;
  };
  struct Change {
    int64_t when;
    int64_t bytes;
    std::set<size_t> used_on;  // streams
  };

  int64_t Here() { return running_.first == this ? works_[running_.second].launched : ++now_; }
  int64_t WhenOf(const Change& change) const {
    int64_t when = change.when;
    for (const size_t stream : change.used_on) when = std::max(when, EndOfTail(stream, change.when));
    return when;
  }
  // Of what the stream had been given by then.
  int64_t EndOfTail(size_t stream, int64_t by) const {
    int64_t ended = 0;
    for (const Work& work : works_) {
      if (work.stream == stream && work.launched <= by) ended = std::max(ended, work.ended);
    }
    return ended;
  }

  static inline thread_local std::pair<const IssuedMemory*, size_t> running_;

  mutable std::mutex mutex_;
  int64_t now_ = 0, before_ = 0;
  std::vector<Work> works_;
  std::vector<Change> changes_;
  std::map<const void*, std::set<size_t>> live_;  // the streams that use a block beside the one it was made on
};
using IssuedMemoryPtr = std::shared_ptr<IssuedMemory>;

class CountedStream : public DeviceStream {
 public:
  CountedStream(IssuedMemory& memory, size_t number, std::unique_ptr<DeviceStream> stream)
      : memory_(memory), number_(number), stream_(std::move(stream)) {}

  absl::Status Launch(std::function<absl::Status()> work) override {
    const size_t launched = memory_.Launched(number_);
    return stream_->Launch([this, launched, work = std::move(work)] { return memory_.Run(launched, work); });
  }
  absl::Status Call(const std::function<absl::Status()>& work) override { return stream_->Call(work); }
  absl::Status Wait(StreamMarkPtr mark) override { return stream_->Wait(std::move(mark)); }
  absl::StatusOr<StreamMarkPtr> Mark() override { return stream_->Mark(); }
  absl::Status Settle() override { return stream_->Settle(); }
  bool Idle() const override { return stream_->Idle(); }
  void* handle() const override { return stream_->handle(); }

 private:
  IssuedMemory& memory_;
  const size_t number_;
  const std::unique_ptr<DeviceStream> stream_;
};

}  // namespace motley::engine
