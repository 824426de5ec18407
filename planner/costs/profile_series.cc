#include "planner/costs/profile_series.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace motley::planner {
namespace {

constexpr double kFitEnd = 16;  // largest batch of the published fits

absl::Status CheckSampleSeconds(double seconds, double samples, const std::string& path) {
  const double each = seconds / samples;
  if (each >= kLeastSampleSeconds && each <= kMostSampleSeconds) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": batch ", samples, " takes ", each, " s a sample; it must lie between ",
                                                 kLeastSampleSeconds, " and ", kMostSampleSeconds,
                                                 " s (is it in the right unit?)"));
}

// Sizes whose time is far from the line through the points beside it.
std::vector<double> Outliers(const std::vector<double>& xs, const std::vector<double>& ys) {
  std::vector<double> found;
  for (size_t i = 1; i + 1 < xs.size(); ++i) {
    const double t = (xs[i] - xs[i - 1]) / (xs[i + 1] - xs[i - 1]);
    const double expected = ys[i - 1] + t * (ys[i + 1] - ys[i - 1]);
    if (std::abs(ys[i] - expected) > kOutlierPart * expected) found.push_back(xs[i]);
  }
  return found;
}

}  // namespace

absl::StatusOr<Curve> CurveOfSeries(std::vector<double> samples, std::vector<double> seconds, const std::string& path,
                                    std::vector<std::string>* repairs) {
  if (samples.empty() || samples.size() != seconds.size()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", samples.size(), " batch sizes and ", seconds.size(),
                                                   " times; give one time for each size, at least one"));
  }
  bool falls = false;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!(samples[i] > 0) || (i > 0 && !(samples[i] > samples[i - 1])) || !std::isfinite(samples[i])) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": batch sizes must be above 0 and rise, got ", samples[i]));
    }
    if (!(seconds[i] > 0) || !std::isfinite(seconds[i])) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": the time of batch ", samples[i], " must be above 0 and finite"));
    }
    MOTLEY_RETURN_IF_ERROR(CheckSampleSeconds(seconds[i], samples[i], path));
    falls = falls || (i > 0 && seconds[i] < seconds[i - 1]);
  }
  const std::vector<double> outliers = Outliers(samples, seconds);
  if (!outliers.empty()) {
    repairs->push_back(absl::StrCat(path, ": far from the neighbours at batch ", absl::StrJoin(outliers, ", "), "; kept"));
  }
  if (falls) repairs->push_back(absl::StrCat(path, ": times fall as the batch grows; replaced by the nearest that do not"));
  return Curve::Isotonic(std::move(samples), std::move(seconds));
}

absl::StatusOr<Curve> CurveOfFit(double slope_seconds, double intercept_seconds, const std::string& path,
                                 std::vector<std::string>* repairs) {
  if (!(slope_seconds > 0) || !std::isfinite(slope_seconds) || !std::isfinite(intercept_seconds)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a fit's slope must be above 0 and both numbers finite"));
  }
  const double end = slope_seconds * kFitEnd + intercept_seconds;
  if (!(end > 0)) return absl::InvalidArgumentError(absl::StrCat(path, ": the fit is negative at batch ", kFitEnd));
  MOTLEY_RETURN_IF_ERROR(CheckSampleSeconds(end, kFitEnd, path));
  MOTLEY_RETURN_IF_ERROR(CheckSampleSeconds(std::max(slope_seconds + intercept_seconds, kLeastSampleSeconds), 1, path));
  if (intercept_seconds >= 0) return Curve({1, kFitEnd}, {slope_seconds + intercept_seconds, end});
  repairs->push_back(absl::StrCat(path, ": negative intercept; proportional up to batch ", kFitEnd));
  return Curve({1, kFitEnd, 2 * kFitEnd}, {end / kFitEnd, end, end + slope_seconds * kFitEnd});
}

}  // namespace motley::planner
