// What the lanes of one device share: the first error, and how to wait. Thread-safe.
#pragma once

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/steady_condition.h"
#include "worker/engine/lanes/device_lane.h"
#include "worker/engine/lanes/device_stream.h"

namespace motley::engine {

class DeviceLanes {
 public:
  // `on_error` is called once, for the first error, without a lock: it wakes what blocks on other lanes. `health` is asked now
  // and then while a lane is awaited: streams do not say that the peer is gone for whom they wait.
  DeviceLanes(const Clock& clock, std::function<void(const absl::Status&)> on_error, std::function<absl::Status()> health = {})
      : clock_(clock), on_error_(std::move(on_error)), health_(std::move(health)) {}

  // The first error; OK: none.
  absl::Status error() const {
    absl::MutexLock lock(&mutex_);
    return error_;
  }
  // Ends all lanes. Later errors are dropped.
  void Fail(const absl::Status& error);
  // Blocks until `event` has fired, or an error has ended the lanes, or `given_up` says true: CANCELLED. An error found on the
  // way is told to all lanes.
  absl::Status Await(const LaneEvent& event, const std::function<bool()>& given_up = {});
  absl::Status Await(const StreamMark& mark, const std::function<bool()>& given_up = {});
  // For who waits by other means: what is ill ends the lanes.
  void AskHealth();

  const Clock& clock() const { return clock_; }

 private:
  friend class HostLane;
  class HostEvent;

  // Looks again and again: soon at first, less often later.
  absl::Status Poll(const std::function<absl::StatusOr<bool>()>& fired, const std::function<bool()>& given_up);
  // Blocks until `ready`, which is called with the mutex held, says true.
  void AwaitChange(const std::function<bool()>& ready);

  const Clock& clock_;
  const std::function<void(const absl::Status&)> on_error_;
  const std::function<absl::Status()> health_;
  mutable absl::Mutex mutex_;
  SteadyCondition changed_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

// Of a thread.
class DeviceLanes::HostEvent : public LaneEvent {
 public:
  explicit HostEvent(DeviceLanes& lanes) : lanes_(lanes) {}

  absl::StatusOr<bool> Fired() const override {
    absl::MutexLock lock(&lanes_.mutex_);
    return done_;
  }
  absl::Duration end() const override {
    absl::MutexLock lock(&lanes_.mutex_);
    return end_;
  }
  void Fire(absl::Duration end) {
    absl::MutexLock lock(&lanes_.mutex_);
    done_ = true;
    end_ = end;
    lanes_.changed_.NotifyAll();
  }

 private:
  friend class DeviceLanes;
  DeviceLanes& lanes_;
  // Guarded by the lanes' mutex, which the analysis does not know for the same from here and from there.
  bool done_ = false;
  absl::Duration end_;
};

}  // namespace motley::engine
