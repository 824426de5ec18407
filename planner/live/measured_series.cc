#include "planner/live/measured_series.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/costs/profile_series.h"

namespace motley::planner {
namespace {

// Those that all points have. A file holds no time of 0, which half of a backward may take.
void AddHalvesAndPart(const UnitProfile& unit, MeasuredSeries* series) {
  const auto measured = [&unit](double ComputePoint::*one, double ComputePoint::*other) {
    return std::all_of(unit.points.begin(), unit.points.end(), [&](const ComputePoint& p) { return p.*one + p.*other > 0; });
  };
  const auto seconds = [&unit](double ComputePoint::*of) {
    std::vector<double> all;
    for (const ComputePoint& point : unit.points) {
      all.push_back(std::max(point.*of, kLeastSampleSeconds * static_cast<double>(point.microbatch)));
    }
    return all;
  };
  if (measured(&ComputePoint::backward_input_seconds, &ComputePoint::backward_weight_seconds)) {
    series->backward_input_seconds = seconds(&ComputePoint::backward_input_seconds);
    series->backward_weight_seconds = seconds(&ComputePoint::backward_weight_seconds);
  }
  if (unit.part > 0 && measured(&ComputePoint::part_forward_seconds, &ComputePoint::part_backward_seconds)) {
    series->part = unit.part;
    series->part_forward_seconds = seconds(&ComputePoint::part_forward_seconds);
    series->part_backward_seconds = seconds(&ComputePoint::part_backward_seconds);
  }
}

}  // namespace

absl::Status CheckPoints(const UnitProfile& profile, const std::string& of) {
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(of, ": ", what, "; profile the device again"));
  };
  if (profile.points.empty()) return error("no points");
  int64_t previous = 0;
  for (const ComputePoint& p : profile.points) {
    if (p.microbatch <= previous) return error("microbatches must be positive and ascending");
    previous = p.microbatch;
    const double all[] = {p.forward_seconds,         p.backward_seconds,     p.backward_input_seconds,
                          p.backward_weight_seconds, p.part_forward_seconds, p.part_backward_seconds};
    const bool seconds_ok = std::all_of(std::begin(all), std::end(all), [](double s) { return std::isfinite(s) && s >= 0; });
    if (!seconds_ok || p.saved_bytes < 0 || p.workspace_bytes < 0 || p.forward_workspace_bytes < 0)
      return error(absl::StrCat("negative or infinite value at microbatch ", p.microbatch));
  }
  if (!(profile.part >= 0 && profile.part < 1)) return error(absl::StrCat("measured part ", profile.part, " is not below 1"));
  return absl::OkStatus();
}

std::optional<MeasuredSeries> SeriesOf(const UnitProfile& unit) {
  MeasuredSeries series;
  for (const ComputePoint& point : unit.points) {
    const auto samples = static_cast<double>(point.microbatch);
    if (std::min(point.forward_seconds, point.backward_seconds) < kLeastSampleSeconds * samples) return std::nullopt;
    series.samples.push_back(samples);
    series.forward_seconds.push_back(point.forward_seconds);
    series.backward_seconds.push_back(point.backward_seconds);
    // More samples never need less: where noise says so, the most so far counts.
    const auto most = [](const std::vector<int64_t>& so_far, int64_t bytes) {
      return so_far.empty() ? bytes : std::max(so_far.back(), bytes);
    };
    series.saved_bytes.push_back(most(series.saved_bytes, point.saved_bytes));
    series.workspace_bytes.push_back(most(series.workspace_bytes, point.workspace_bytes));
    series.forward_workspace_bytes.push_back(most(series.forward_workspace_bytes, point.forward_workspace_bytes));
  }
  if (series.samples.empty()) return std::nullopt;
  AddHalvesAndPart(unit, &series);
  return series;
}

}  // namespace motley::planner
