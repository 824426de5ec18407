// Lanes of a CPU or of an emulated device: each is a thread that lives as long as the lane.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/engine/lanes/device_lane.h"
#include "worker/engine/lanes/lane_pacer.h"

namespace motley::engine {

// What the lanes of one device share: one lock, for events that they wait for, and the first error. Thread-safe.
class HostLanes {
 public:
  // `on_error` is called once, from the lane that fails first, without a lock: it wakes what blocks on other lanes.
  HostLanes(const Clock& clock, std::function<void(const absl::Status&)> on_error)
      : clock_(clock), on_error_(std::move(on_error)) {}

 private:
  friend class HostLane;
  // Guarded by the mutex; mutable because waiters hold events as const.
  struct Event : LaneEvent {
    mutable bool done = false;
    mutable absl::Duration end;  // by the lane's schedule
  };

  const Clock& clock_;
  const std::function<void(const absl::Status&)> on_error_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

class HostLane : public DeviceLane {
 public:
  // `on_start` runs on the lane's thread before any work and before the constructor returns. All must outlive the lane.
  HostLane(HostLanes& lanes, LanePacer& pacer, const std::function<void()>& on_start);
  // Work that has not begun is dropped.
  ~HostLane() override;

  void Begin() override;
  void Wait(LaneEventPtr event) override;
  void Run(LaneWork work) override;
  LaneEventPtr Record() override;
  absl::Status Finish() override;

 private:
  // One of four: a time before which nothing begins, an event to wait for, work, an event to fire.
  struct Item {
    absl::Duration not_before;
    std::shared_ptr<const HostLanes::Event> wait;
    LaneWork work;
    std::shared_ptr<const HostLanes::Event> fire;
  };

  void Loop();
  void Add(Item item);
  // Whether the item was waited for and run.
  bool Do(const Item& item);
  void Fail(const absl::Status& status);

  HostLanes& lanes_;
  LanePacer& pacer_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(lanes_.mutex_);
  bool idle_ ABSL_GUARDED_BY(lanes_.mutex_) = false;  // nothing queued and nothing under way
  bool stopping_ ABSL_GUARDED_BY(lanes_.mutex_) = false;
  absl::Duration ready_;  // of the next piece of work; the lane's thread alone
  std::thread thread_;
};

}  // namespace motley::engine
