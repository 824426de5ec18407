// Whether a device's declared speed lets the model be measured at all: an emulated device takes the declared time for each pass.
#pragma once

#include "absl/status/status.h"
#include "common/session/assignment.h"

namespace motley::engine {

// FAILED_PRECONDITION: the least that is measured, two sizes of each unit, takes longer than is waited for; names the unit, its
// seconds and what to do. A device that declares nothing is always measured.
absl::Status CheckMeasurable(const RankAssignment& assignment);

}  // namespace motley::engine
