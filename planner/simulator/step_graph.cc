#include "planner/simulator/step_graph.h"

#include <algorithm>
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
  switch (kind) {
    case TaskKind::kForward:
      return "forward";
    case TaskKind::kRecompute:
      return "recompute";
    case TaskKind::kBackward:
      return "backward";
    case TaskKind::kBackwardInput:
      return "backward_input";
    case TaskKind::kBackwardWeight:
      return "backward_weight";
    case TaskKind::kOptimizer:
      return "optimizer";
    case TaskKind::kGather:
      return "gather";
    case TaskKind::kReduceScatter:
      return "reduce_scatter";
    case TaskKind::kAllReduce:
      return "all_reduce";
    case TaskKind::kScalars:
      return "scalars";
    case TaskKind::kSend:
      return "send";
    case TaskKind::kOffload:
      return "offload";
    case TaskKind::kPrefetch:
      return "prefetch";
    case TaskKind::kWait:
      return "wait";
  }
  return "unknown";
}

bool IsCompute(TaskKind kind) {
  switch (kind) {
    case TaskKind::kForward:
    case TaskKind::kRecompute:
    case TaskKind::kBackward:
    case TaskKind::kBackwardInput:
    case TaskKind::kBackwardWeight:
    case TaskKind::kOptimizer:
      return true;
    case TaskKind::kGather:
    case TaskKind::kReduceScatter:
    case TaskKind::kAllReduce:
    case TaskKind::kScalars:
    case TaskKind::kSend:
    case TaskKind::kOffload:
    case TaskKind::kPrefetch:
    case TaskKind::kWait:
      return false;
  }
  return false;
}

std::string_view LaneName(Lane lane) {
  switch (lane) {
    case Lane::kCompute:
      return "compute";
    case Lane::kCollective:
      return "collective";
    case Lane::kSend:
      return "send";
    case Lane::kCopy:
      return "copy";
    case Lane::kReceive:
      return "receive";
  }
  return "unknown";
}

std::string TaskLabel(const Task& task) {
  std::string label(TaskName(task.kind));
  if (task.unit >= 0) absl::StrAppend(&label, " ", task.unit);
  if (task.microbatch >= 0) absl::StrAppend(&label, task.unit >= 0 ? "." : " .", task.microbatch);
  return label;
}

}  // namespace motley::planner
