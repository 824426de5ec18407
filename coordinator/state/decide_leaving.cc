// DecideLeaving.
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "coordinator/state/decide_view.h"
#include "coordinator/state/probe.h"
#include "coordinator/state/saving.h"

namespace motley::coordinator {
namespace {

// That come and go within a swap, say that they were told to.
std::set<NodeName> NewcomersThatLeave(const DecideView& v) {
  std::set<NodeName> leaving;
  for (const RankRun& rank : v.run.ranks) {
    const NodeName name = NodeOf(rank.device);
    auto node = v.state.nodes.find(name);
    if (node == v.state.nodes.end() || !node->second.leaves_at) continue;
    leaving.merge(BlamedNewcomers(v.state, v.run, {v.now, FailureKind::kNodeLost, name, DeviceId(), ""}));
  }
  return leaving;
}

}  // namespace

std::optional<Decision> DecideLeaving(const DecideView& v) {
  const std::optional<Leaving> leaving = WhoLeaves(v.now, v.state);
  if (!leaving) return std::nullopt;
  const char* label = leaving->node ? "node_leaving" : "coordinator_stopped";
  const bool running = v.run.stage == Stage::kRunning;
  // Ranks that are only starting have nothing to save, and a coordinator that goes away does not hinder them.
  if (!running && !leaving->node) return std::nullopt;
  const int64_t at_risk = StepsAtRisk(v.run, v.job);
  const absl::Duration needed = TimeToSave(v.now, v.run, v.job);
  const std::string begin = absl::StrCat(leaving->who, " was told to end");
  if (!running || at_risk == 0) {
    return Decision{EndEpoch{false, Ending::kReplan, label, std::nullopt, NewcomersThatLeave(v)},
                    absl::StrCat(begin, "; every step is saved")};
  }
  if (needed <= leaving->left) {
    return Decision{EndEpoch{true, Ending::kReplan, label, std::nullopt},
                    absl::StrFormat("%s within %.0f s: a checkpoint is saved first, which takes about %.1f s", begin,
                                    absl::ToDoubleSeconds(leaving->left), absl::ToDoubleSeconds(needed))};
  }
  const std::string why = needed == absl::InfiniteDuration()
                              ? "the job keeps no checkpoints"
                              : absl::StrFormat("saving takes about %.1f s", absl::ToDoubleSeconds(needed));
  return Decision{EndEpoch{false, Ending::kReplan, label, std::nullopt},
                  absl::StrFormat("%s within %.0f s and %s: %s will be repeated", begin, absl::ToDoubleSeconds(leaving->left),
                                  why, Count(at_risk, "step"))};
}

}  // namespace motley::coordinator
