// The five lanes of a rank, of the kind that its device and its transports ask for (docs/inside/lanes.md). Private to the engine.
#pragma once

#include <array>
#include <memory>

#include "common/base/clock.h"
#include "common/device/device.h"
#include "common/program/operation.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/lanes/device_lane.h"
#include "worker/engine/lanes/device_lanes.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/host_link.h"

namespace motley::engine {

class RankLanes {
 public:
  // All must outlive the lanes. The pacer is the compute lane's.
  RankLanes(const DeviceDescription& device, DeviceBackend& backend, Communicator& communicator, HostLink& host_link,
            ComputePacer& pacer);

  const std::array<DeviceLane*, kNumLanes>& all() const { return all_; }

 private:
  SystemClock clock_;
  DeviceLanes shared_;
  std::array<std::unique_ptr<DeviceLane>, kNumLanes> lanes_;
  std::array<DeviceLane*, kNumLanes> all_{};
};

}  // namespace motley::engine
