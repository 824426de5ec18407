#include "worker/engine/lanes/queued_lane.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace motley::engine {

// An event that its lane's thread has not recorded yet.
class QueuedLane::Promise : public LaneEvent {
 public:
  explicit Promise(DeviceLanes& lanes) : lanes_(lanes) {}

  absl::StatusOr<bool> Fired() const override {
    if (!recorded_.HasBeenNotified()) return false;
    if (event_ == nullptr) return lanes_.error();
    return event_->Fired();
  }
  absl::Duration end() const override { return event_->end(); }

  // Null: an error came first.
  void Keep(LaneEventPtr event) {
    event_ = std::move(event);
    recorded_.Notify();
  }
  // Blocks until it is recorded, which waits for nothing that this lane gives.
  LaneEventPtr Recorded() const {
    recorded_.WaitForNotification();
    return event_;
  }

 private:
  DeviceLanes& lanes_;
  absl::Notification recorded_;
  LaneEventPtr event_;  // constant once notified
};

QueuedLane::QueuedLane(DeviceLanes& lanes, DeviceStream& stream, const std::function<void()>& on_start)
    : lanes_(lanes), stream_(lanes, stream) {
  absl::Notification started;
  thread_ = std::thread([this, &on_start, &started] {
    if (on_start) on_start();
    started.Notify();
    Loop();
  });
  started.WaitForNotification();
}

QueuedLane::~QueuedLane() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

// Here and now: nothing is queued, and once other lanes have work, to wait for the whole device is to wait for their peers.
void QueuedLane::Begin() { stream_.Begin(); }

void QueuedLane::Wait(LaneEventPtr event) {
  Add([this, event = std::move(event)] {
    const auto* const promise = dynamic_cast<const Promise*>(event.get());
    stream_.Wait(promise != nullptr ? promise->Recorded() : event);
  });
}

void QueuedLane::Run(LaneWork work) {
  Add([this, work = std::move(work)] { stream_.Run(work); });
}

LaneEventPtr QueuedLane::Record() {
  auto promise = std::make_shared<Promise>(lanes_);
  Add([this, promise] { promise->Keep(stream_.Record()); });
  return promise;
}

absl::Status QueuedLane::Finish() {
  absl::Status status;
  Add([this, &status] { status = stream_.Finish(); });
  absl::MutexLock lock(&mutex_);
  while (!idle_ || !queue_.empty()) changed_.Wait(&mutex_);
  return status;
}

void QueuedLane::Add(std::function<void()> call) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(call));
  idle_ = false;
  changed_.SignalAll();
}

void QueuedLane::Loop() {
  for (;;) {
    std::function<void()> call;
    {
      absl::MutexLock lock(&mutex_);
      idle_ = queue_.empty();
      if (idle_) changed_.SignalAll();
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      call = std::move(queue_.front());
      queue_.pop_front();
    }
    call();
  }
}

}  // namespace motley::engine
