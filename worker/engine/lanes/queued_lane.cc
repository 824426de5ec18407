#include "worker/engine/lanes/queued_lane.h"

#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"

namespace motley::engine {
namespace {

// How often somebody who waits for a lane's thread looks whether the lanes have failed, or a peer: then it gives nothing any
// more.
constexpr absl::Duration kLook = absl::Milliseconds(20);

}  // namespace

// An event that its lane's thread has not recorded yet.
class QueuedLane::Promise : public LaneEvent {
 public:
  explicit Promise(DeviceLanes& lanes) : lanes_(lanes) {}

  absl::StatusOr<bool> Fired() const override {
    if (absl::Status error = lanes_.error(); !error.ok()) return error;
    if (!recorded_.HasBeenNotified()) return false;
    return event_->Fired();
  }
  absl::Duration end() const override { return event_->end(); }

  void Keep(LaneEventPtr event) {
    event_ = std::move(event);
    recorded_.Notify();
  }
  // Blocks until it is recorded. Null: the lanes have failed.
  LaneEventPtr Recorded() const {
    while (!recorded_.WaitForNotificationWithTimeout(kLook)) {
      lanes_.AskHealth();
      if (!lanes_.error().ok()) return nullptr;
    }
    return event_;
  }

 private:
  DeviceLanes& lanes_;
  absl::Notification recorded_;
  LaneEventPtr event_;  // constant once notified; null: the lanes have failed
};

// Here and now: nothing is queued, and once other lanes have work, to wait for the whole device is to wait for their peers.
void QueuedLane::Begin() { stream_.Begin(); }

void QueuedLane::Wait(LaneEventPtr event) {
  Queue([this, event = std::move(event)] {
    const auto* const promise = dynamic_cast<const Promise*>(event.get());
    stream_.Wait(promise != nullptr ? promise->Recorded() : event);
  });
}

void QueuedLane::Run(LaneWork work) {
  Queue([this, work = std::move(work)] { stream_.Run(work); });
}

LaneEventPtr QueuedLane::Record() {
  auto promise = std::make_shared<Promise>(lanes_);
  Queue([this, promise] { promise->Keep(stream_.Record()); });
  return promise;
}

absl::Status QueuedLane::Finish() {
  static_cast<void>(thread_.Finish());  // the stream says the same
  return stream_.Finish();
}

void QueuedLane::Queue(std::function<void()> call) {
  // What goes wrong on the stream the stream's lane tells the others.
  thread_.Run({[call = std::move(call)] {
    call();
    return absl::OkStatus();
  }});
}

}  // namespace motley::engine
