// Lanes of a CPU or of an emulated device, and those of a card whose transport blocks a thread: each is a thread that lives as
// long as the lane.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/engine/lanes/device_lane.h"
#include "worker/engine/lanes/device_lanes.h"
#include "worker/engine/lanes/device_stream.h"
#include "worker/engine/lanes/lane_pacer.h"

namespace motley::engine {

class HostLane : public DeviceLane {
 public:
  // `on_start` runs on the lane's thread before any work and before the constructor returns. With a stream, work is called with
  // it and has ended when the stream says so. All must outlive the lane.
  HostLane(DeviceLanes& lanes, LanePacer& pacer, const std::function<void()>& on_start, DeviceStream* stream = nullptr);
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
    LaneEventPtr wait;
    LaneWork work;
    std::shared_ptr<DeviceLanes::HostEvent> fire;
  };

  void Loop();
  void Add(Item item);
  // Whether the item was waited for and run.
  bool Do(const Item& item);
  bool Await(const LaneEvent& event);
  absl::Status RunWork(const LaneWork& work);

  DeviceLanes& lanes_;
  LanePacer& pacer_;
  DeviceStream* const stream_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(lanes_.mutex_);
  bool idle_ ABSL_GUARDED_BY(lanes_.mutex_) = false;  // nothing queued and nothing under way
  std::atomic<bool> stopping_ = false;
  absl::Duration ready_;  // of the next piece of work; the lane's thread alone
  std::thread thread_;
};

}  // namespace motley::engine
