// From numbers as profiles list them to curves: repairs made are described, numbers that no clock can give are refused.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/util/curve.h"

namespace motley::planner {

// Points further from the line through their neighbours than this part of it are called outliers.
inline constexpr double kOutlierPart = 0.25;
// Seconds of a sample that no card and no layer gives: such a number is in another unit.
inline constexpr double kLeastSampleSeconds = 1e-9, kMostSampleSeconds = 1e5;

// A measured series, made isotonic. `path` names it in messages; repairs are appended. INVALID_ARGUMENT: no points, sizes that do
// not rise, times that are not positive and finite, or
// are less than kLeastSampleSeconds or more than kMostSampleSeconds a sample.
absl::StatusOr<Curve> CurveOfSeries(std::vector<double> samples, std::vector<double> seconds, const std::string& path,
                                    std::vector<std::string>* repairs);

// A published fit over 1..16 samples. A negative intercept would make small batches nearly free; there the line from zero to the
// fit's end holds instead. INVALID_ARGUMENT: a slope that is not positive, values that are not finite, times of batch 1
// beyond the same limits.
absl::StatusOr<Curve> CurveOfFit(double slope_seconds, double intercept_seconds, const std::string& path,
                                 std::vector<std::string>* repairs);

}  // namespace motley::planner
