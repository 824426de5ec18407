// What was measured of a unit, in the planner's own form.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/session/profile.h"
#include "planner/costs/motley_profile.h"

namespace motley::planner {

// INVALID_ARGUMENT: no points, or numbers that nobody can have measured; begins with `of`.
absl::Status CheckPoints(const UnitProfile& profile, const std::string& of);

// The part of the points that a file may hold; none where a time of a whole pass is not one (a declared time of 0).
std::optional<MeasuredSeries> SeriesOf(const UnitProfile& unit);

}  // namespace motley::planner
