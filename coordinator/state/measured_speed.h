// What a profile says of a device's speed, for people.
#pragma once

#include "common/model/model.h"
#include "common/session/profile.h"
#include "coordinator/state/node.h"

namespace motley::coordinator {

// Forward and backward of the whole model alone on the device, at the microbatch that is fastest per sample.
MeasuredSpeed SpeedOf(const ComputeProfile& profile, const ModelShape& shape, int64_t seq_len);

}  // namespace motley::coordinator
