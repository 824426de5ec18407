// A stream's lane with a thread of its own that gives the stream its work: where the stream waits for a thread, or has all the
// launches that it takes, it holds up this thread and not the issuer of all lanes (docs/inside/cuda.md).
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/lanes/device_lane.h"
#include "worker/engine/lanes/device_lanes.h"
#include "worker/engine/lanes/device_stream.h"
#include "worker/engine/lanes/host_lane.h"
#include "worker/engine/lanes/stream_lane.h"

namespace motley::engine {

class QueuedLane : public DeviceLane {
 public:
  // `on_start` runs on the lane's thread before any work and before the constructor returns. All must outlive the lane.
  QueuedLane(DeviceLanes& lanes, DeviceStream& stream, const std::function<void()>& on_start)
      : lanes_(lanes), stream_(lanes, stream), thread_(lanes, pacer_, on_start) {}

  void Begin() override;
  void Wait(LaneEventPtr event) override;
  void Run(LaneWork work) override;
  LaneEventPtr Record() override;
  absl::Status Finish() override;

 private:
  class Promise;

  void Queue(std::function<void()> call);

  DeviceLanes& lanes_;
  StreamLane stream_;  // the thread's alone between Begin and Finish
  ComputePacer pacer_{DeviceDescription(), lanes_.clock()};
  HostLane thread_;  // last: it ends before what it uses
};

}  // namespace motley::engine
