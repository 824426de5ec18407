// Before the first step every kind of work of the compute and the collective lane runs once, with the sizes that steps have. A
// device may load a kernel when it is first launched, and may wait then until it has nothing else to do (CUDA does: lazy
// loading). In a step it may have a transfer that waits for a peer, which may wait for this rank. The lanes themselves do it:
// libraries keep handles and plans for each thread. docs/inside/cuda.md
#pragma once

#include <array>

#include "absl/status/status.h"
#include "common/job/job.h"
#include "common/session/assignment.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/lanes/device_lane.h"

namespace motley::engine {

// Blocks until it is over; a device without streams has nothing to load. Its memory stays with the allocator: steps need it
// again. `rows`: whether the data has rows, whose documents have kernels of their own. `lanes`: by Lane, those of the steps.
// RESOURCE_EXHAUSTED (Fault::kMemory): a unit does not fit, names the device; errors of the device.
absl::Status Rehearse(const RankAssignment& assignment, Precision precision, bool rows, DeviceBackend& backend,
                      const std::array<DeviceLane*, kNumLanes>& lanes);

}  // namespace motley::engine
