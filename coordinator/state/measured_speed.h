// What a profile says of a device's speed, for people.
#pragma once

#include <vector>

#include "common/model/model.h"
#include "common/session/assignment.h"
#include "common/session/profile.h"
#include "coordinator/state/node.h"

namespace motley::coordinator {

// Forward and backward of the whole model alone on the device, at the microbatch that is fastest per sample.
MeasuredSpeed SpeedOf(const ComputeProfile& profile, const ModelShape& shape, int64_t seq_len);
// A step of these ranks if each device computed as fast as it is declared to, without recomputation or waiting. Over the measured
// time this is the model FLOPs utilization (PaLM, section 4.1). 0: a device is as fast as its host, which declares nothing.
double IdealStepSeconds(const std::vector<RankAssignment>& ranks);

}  // namespace motley::coordinator
