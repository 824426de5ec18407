// The figures in seconds that a point of a unit's profile has.
#pragma once

#include "common/session/profile.h"

namespace motley::engine {

inline constexpr double ComputePoint::*kSecondsOfPoint[] = {
    &ComputePoint::forward_seconds,         &ComputePoint::backward_seconds,     &ComputePoint::backward_input_seconds,
    &ComputePoint::backward_weight_seconds, &ComputePoint::part_forward_seconds, &ComputePoint::part_backward_seconds};

}  // namespace motley::engine
