// Measures the end of a step on one device alone, as the executor does it with what a rank owns: the squared norm, AdamW on
// clipped gradients, zeroing them, and the cast of the parameters to the type that computes.
#pragma once

#include "common/job/job.h"
#include "common/session/assignment.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/lanes/compute_pacer.h"

namespace motley::engine {

struct OptimizerTimes {
  double seconds_per_element = 0;
  double launch_seconds = 0;  // of every step
};

// On a stream of arrays that no card's cache holds, where the model has so many elements and a tenth of the card's memory is room
// for them. May throw c10::Error.
OptimizerTimes MeasureOptimizer(const RankAssignment& assignment, const Precision& precision, DeviceBackend& backend,
                                ComputePacer& pacer);

}  // namespace motley::engine
