#include "worker/engine/lanes/host_lane.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"

namespace motley::engine {
HostLane::HostLane(DeviceLanes& lanes, LanePacer& pacer, const std::function<void()>& on_start, DeviceStream* stream)
    : lanes_(lanes), pacer_(pacer), stream_(stream) {
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
    lanes_.changed_.NotifyAll();
  }
  thread_.join();
}

void HostLane::Begin() { Add({.not_before = lanes_.clock_.Now()}); }

void HostLane::Wait(LaneEventPtr event) { Add({.wait = std::move(event)}); }

void HostLane::Run(LaneWork work) { Add({.work = std::move(work)}); }

LaneEventPtr HostLane::Record() {
  auto event = std::make_shared<DeviceLanes::HostEvent>(lanes_);
  Add({.fire = event});
  return event;
}

absl::Status HostLane::Finish() {
  lanes_.AwaitChange([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lanes_.mutex_) { return idle_ && queue_.empty(); });
  return lanes_.error();
}

void HostLane::Add(Item item) {
  absl::MutexLock lock(&lanes_.mutex_);
  queue_.push_back(std::move(item));
  if (std::exchange(idle_, false)) lanes_.changed_.NotifyAll();
}

void HostLane::Loop() {
  for (;;) {
    Item item;
    {
      absl::MutexLock lock(&lanes_.mutex_);
      idle_ = queue_.empty();
      if (idle_) lanes_.changed_.NotifyAll();
      const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lanes_.mutex_) { return !queue_.empty() || stopping_; };
      while (!lanes_.changed_.WaitFor(lanes_.mutex_, absl::InfiniteDuration(), wanted)) {
      }
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
  if (item.wait != nullptr) {
    if (!Await(*item.wait)) return false;
    ready_ = std::max(ready_, item.wait->end());
  }
  if (!lanes_.error().ok() || stopping_) return false;
  if (item.fire != nullptr) item.fire->Fire(pacer_.end());
  if (!item.work.run) return true;
  pacer_.Begin(std::exchange(ready_, absl::ZeroDuration()));
  const absl::Status status = RunWork(item.work);
  if (status.ok()) {
    pacer_.End(item.work.flops);
    if (item.work.span != nullptr) *item.work.span = {pacer_.begin(), pacer_.end()};
    return true;
  }
  lanes_.Fail(status);
  return false;
}

bool HostLane::Await(const LaneEvent& event) {
  return lanes_.Await(event, [this] { return stopping_.load(); }).ok();
}

absl::Status HostLane::RunWork(const LaneWork& work) {
  if (stream_ == nullptr) return work.run();
  MOTLEY_RETURN_IF_ERROR(stream_->Call(work.run));
  MOTLEY_ASSIGN_OR_RETURN(const StreamMarkPtr mark, stream_->Mark());
  return lanes_.Await(*mark, [this] { return stopping_.load(); });
}

}  // namespace motley::engine
