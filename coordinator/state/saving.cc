#include "coordinator/state/saving.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/state/sender.h"

namespace motley::coordinator {
namespace {

// Until a save has been timed: a slow disk, and the time to open and sync files.
constexpr double kSlowestBytesPerSecond = 50e6;
constexpr double kSaveOverheadSeconds = 1;
// Saves of one job differ: others use the same disk.
constexpr double kSaveMargin = 2;

}  // namespace

std::optional<Leaving> WhoLeaves(absl::Duration now, const ClusterState& state) {
  std::optional<Leaving> first;
  if (state.stops_at) first = Leaving{"the coordinator", false, *state.stops_at - now};
  if (!state.run) return first;
  for (const auto& [name, node] : state.nodes) {
    if (!node.leaves_at || !node.connected || !HostsRank(*state.run, name)) continue;
    const absl::Duration left = *node.leaves_at - now;
    if (!first || left < first->left) first = Leaving{absl::StrCat("node ", name.value()), true, left};
  }
  return first;
}

absl::Duration TimeToSave(absl::Duration now, const JobRun& run, const JobRecord& job) {
  if (!KeepsCheckpoints(job.config.checkpoint)) return absl::InfiniteDuration();
  const double step = std::max(run.typical_step_seconds, job.predicted_step_seconds);
  const double since = run.epoch_steps > 0 ? absl::ToDoubleSeconds(now - run.last_step_at) : 0;
  const double save = run.save_seconds > 0 ? kSaveMargin * run.save_seconds
                                           : kSaveOverheadSeconds + static_cast<double>(run.state_bytes) / kSlowestBytesPerSecond;
  // The ranks hear of it in the middle of a step and agree at the end of the next.
  return absl::Seconds(std::max(0.0, step - since) + step + save);
}

int64_t StepsAtRisk(const JobRun& run, const JobRecord& job) { return std::max<int64_t>(0, job.step - run.saved_step); }

}  // namespace motley::coordinator
