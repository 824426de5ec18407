#include "worker/engine/lanes/host_lane.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"

namespace motley::engine {

HostLane::HostLane(HostLanes& lanes, LanePacer& pacer, const std::function<void()>& on_start) : lanes_(lanes), pacer_(pacer) {
  absl::Notification started;
  thread_ = std::thread([this, &on_start, &started] {
    if (on_start) on_start();
    started.Notify();
    Loop();
  });
  started.WaitForNotification();
}

HostLane::~HostLane() {
  {
    absl::MutexLock lock(&lanes_.mutex_);
    stopping_ = true;
    lanes_.changed_.SignalAll();
  }
  thread_.join();
}

void HostLane::Begin() { Add({.not_before = lanes_.clock_.Now()}); }

void HostLane::Wait(LaneEventPtr event) { Add({.wait = std::static_pointer_cast<const HostLanes::Event>(std::move(event))}); }

void HostLane::Run(LaneWork work) { Add({.work = std::move(work)}); }

LaneEventPtr HostLane::Record() {
  auto event = std::make_shared<const HostLanes::Event>();
  Add({.fire = event});
  return event;
}

absl::Status HostLane::Finish() {
  absl::MutexLock lock(&lanes_.mutex_);
  while (!idle_ || !queue_.empty()) lanes_.changed_.Wait(&lanes_.mutex_);
  return lanes_.error_;
}

void HostLane::Add(Item item) {
  absl::MutexLock lock(&lanes_.mutex_);
  queue_.push_back(std::move(item));
  if (std::exchange(idle_, false)) lanes_.changed_.SignalAll();
}

void HostLane::Loop() {
  for (;;) {
    Item item;
    {
      absl::MutexLock lock(&lanes_.mutex_);
      idle_ = queue_.empty();
      if (idle_) lanes_.changed_.SignalAll();
      while (queue_.empty() && !stopping_) lanes_.changed_.Wait(&lanes_.mutex_);
      if (stopping_) return;
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    if (!Do(item)) {
      absl::MutexLock lock(&lanes_.mutex_);
      queue_.clear();
    }
  }
}

bool HostLane::Do(const Item& item) {
  ready_ = std::max(ready_, item.not_before);
  {
    absl::MutexLock lock(&lanes_.mutex_);
    if (item.wait != nullptr) {
      while (!item.wait->done && lanes_.error_.ok() && !stopping_) lanes_.changed_.Wait(&lanes_.mutex_);
      ready_ = std::max(ready_, item.wait->end);
    }
    if (!lanes_.error_.ok() || stopping_) return false;
    if (item.fire != nullptr) {
      item.fire->done = true;
      item.fire->end = pacer_.end();
      lanes_.changed_.SignalAll();
    }
  }
  if (!item.work.run) return true;
  pacer_.Begin(std::exchange(ready_, absl::ZeroDuration()));
  const absl::Status status = item.work.run();
  if (status.ok()) {
    pacer_.End(item.work.flops);
    if (item.work.span != nullptr) *item.work.span = {pacer_.begin(), pacer_.end()};
    return true;
  }
  Fail(status);
  return false;
}

void HostLane::Fail(const absl::Status& status) {
  {
    absl::MutexLock lock(&lanes_.mutex_);
    if (!lanes_.error_.ok()) return;
    lanes_.error_ = status;
    lanes_.changed_.SignalAll();
  }
  if (lanes_.on_error_) lanes_.on_error_(status);
}

}  // namespace motley::engine
