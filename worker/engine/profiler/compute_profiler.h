// Measures one device alone, on the engine's real units: embedding, layer and head over several microbatch sizes
// (unit_profiler.h), and the end of a step (optimizer_profiler.h). A few seconds at most, also on a slow emulated device: sizes
// double until the time allowed for the unit ends them, and the planner extrapolates linearly. A card is loaded before (soak.h),
// which takes it longer. On a device with streams a time is what lies between two marks of the compute stream (LaneTimer).
//
// Reads the device's count of bytes: nothing else may allocate tensors on it meanwhile.
// May throw c10::Error; c10::OutOfMemoryError when not even one sample of one unit fits the device.
#pragma once

#include "common/session/assignment.h"
#include "common/session/profile.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/profiler/profile_time.h"

namespace motley::engine {

// A card's takes 60 s at most, its load before included: `time` gets that limit, and says what was left out for it
// (unit_profiler.h).
ComputeProfile ProfileUnits(const RankAssignment& assignment, DeviceBackend& backend, ComputePacer& pacer, ProfileTime& time);

}  // namespace motley::engine
