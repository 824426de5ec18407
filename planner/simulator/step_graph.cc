#include "planner/simulator/step_graph.h"

#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace motley::planner {

Picoseconds ToPicoseconds(double seconds) {
  // The first double that is not below the limit; smaller ones round to a number that fits.
  constexpr double kLimit = static_cast<double>(std::numeric_limits<Picoseconds>::max());
  const double ps = std::round(seconds * kPicosecondsPerSecond);
  if (!(ps > -kLimit)) return std::isnan(ps) ? 0 : std::numeric_limits<Picoseconds>::min();
  return ps >= kLimit ? std::numeric_limits<Picoseconds>::max() : static_cast<Picoseconds>(ps);
}

std::string_view TaskName(TaskKind kind) {
  constexpr std::array<std::string_view, kNumTaskKinds> kNames = {
      "forward",        "recompute",  "backward", "backward_input", "backward_weight", "optimizer", "gather",
      "reduce_scatter", "all_reduce", "scalars",  "send",           "offload",         "prefetch",  "wait"};
  static_assert(!kNames.back().empty());  // a name for each
  return kNames[static_cast<size_t>(kind)];
}

std::string_view LaneName(Lane lane) {
  constexpr std::array<std::string_view, kNumLanes> kNames = {"compute", "collective", "send", "receive", "copy"};
  return kNames[static_cast<size_t>(lane)];
}

std::string TaskLabel(const Task& task) {
  std::string label(TaskName(task.kind));
  if (task.unit >= 0) absl::StrAppend(&label, " ", task.unit);
  if (task.microbatch >= 0) absl::StrAppend(&label, task.unit >= 0 ? "." : " .", task.microbatch);
  return label;
}

}  // namespace motley::planner
