#include "planner/answers/explain_offload.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/answers/host_share.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/price.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr size_t kMostRanks = 16;  // lines

bool IsCopy(const Task& task) { return task.kind == TaskKind::kOffload || task.kind == TaskKind::kPrefetch; }

// By actor, when it computes: in order, since a lane runs one task after the other.
std::vector<std::vector<TaskSpan>> ComputeSpans(const Evaluation& evaluation) {
  std::vector<std::vector<TaskSpan>> spans(evaluation.graph.actors.size());
  for (size_t t = 0; t < evaluation.graph.tasks.size(); ++t) {
    const Task& task = evaluation.graph.tasks[t];
    if (!IsCompute(task.kind)) continue;
    for (const int32_t lane : task.lanes) spans[lane / kNumLanes].push_back(evaluation.timeline.spans[t]);
  }
  for (std::vector<TaskSpan>& of_actor : spans) {
    std::sort(of_actor.begin(), of_actor.end(), [](const TaskSpan& a, const TaskSpan& b) { return a.begin < b.begin; });
  }
  return spans;
}

Picoseconds Beside(const TaskSpan& copy, const std::vector<TaskSpan>& computes) {
  Picoseconds together = 0;
  auto at = std::partition_point(computes.begin(), computes.end(), [&](const TaskSpan& span) { return span.end <= copy.begin; });
  for (; at != computes.end() && at->begin < copy.end; ++at) {
    together += std::max<Picoseconds>(0, std::min(at->end, copy.end) - std::max(at->begin, copy.begin));
  }
  return together;
}

struct Use {
  Picoseconds copying = 0, hidden = 0;
  double seconds = 0;
};

Plan OnTheCards(Plan plan) {
  ForEachRank(plan, [](RankPlan& rank) { rank.offload = {}; });
  return plan;
}

std::string WithoutIt(const Setting& setting, const Plan& plan) {
  const absl::StatusOr<Evaluation> alone = Price(setting, OnTheCards(plan));
  if (!alone.ok()) return absl::StrCat("with all of it on the cards this plan cannot be priced: ", alone.status().message());
  if (!alone->does_not_fit.empty()) {
    return absl::StrCat("with all of it on the cards this plan does not fit: ", alone->does_not_fit.front());
  }
  const double now = plan.predicted.step_seconds, then = alone->plan.predicted.step_seconds;
  return absl::StrCat("with all of it on the cards this plan fits, too, and takes ", SecondsText(then), " a step, ",
                      ChangeText(now > 0 && then > 0 ? now / then - 1 : 0, "faster", "slower"));
}

}  // namespace

HostLinkUse FullestHostLink(const Setting& setting, const Evaluation& evaluation) {
  const std::vector<std::vector<TaskSpan>> computes = ComputeSpans(evaluation);
  std::map<int, Use> uses;  // by resource
  for (size_t t = 0; t < evaluation.graph.tasks.size(); ++t) {
    const Task& task = evaluation.graph.tasks[t];
    if (!IsCopy(task) || task.lanes.empty()) continue;
    const TaskSpan& span = evaluation.timeline.spans[t];
    for (const LinkLoad& load : task.loads) {
      Use& use = uses[load.resource];
      use.seconds += load.bytes / evaluation.graph.link_bytes_per_second[load.resource];
      use.copying += span.end - span.begin;
      use.hidden += Beside(span, computes[task.lanes[0] / kNumLanes]);
    }
  }
  HostLinkUse fullest;
  for (const auto& [resource, use] : uses) {
    if (use.seconds <= fullest.busy_seconds) continue;
    fullest = {setting.links.Name(resource), use.seconds, ToSeconds(use.copying), ToSeconds(use.hidden)};
  }
  return fullest;
}

std::string ExplainOffload(const Setting& setting, const Evaluation& evaluation) {
  const Plan& plan = evaluation.plan;
  if (!OffloadsOf(plan).any()) return "";
  std::string text = "what waits in the hosts' memory:\n";
  size_t ranks = 0;
  ForEachRank(plan, [&](const RankPlan& rank) {
    if (!rank.offload.any() || ++ranks > kMostRanks) return;
    absl::StrAppend(&text, "  ", rank.device.value(), ": ", InWords(rank.offload), ", ", BytesText(rank.predicted.memory.host),
                    "\n");
  });
  if (ranks > kMostRanks) absl::StrAppend(&text, "  and ", ranks - kMostRanks, " ranks more\n");
  if (const std::vector<HostShare> shares = HostSharesOf(setting, plan); !shares.empty()) {
    absl::StrAppend(&text, "  by host: ", ToText(shares), "\n");
  }
  const HostLinkUse link = FullestHostLink(setting, evaluation);
  const double step = plan.predicted.step_seconds;
  if (link.busy_seconds > 0 && link.copy_seconds > 0 && step > 0) {
    absl::StrAppendFormat(&text,
                          "  the fullest link, %s: busy %s of %s (%.0f %%); of its copies' time %.0f %% hides behind compute\n",
                          link.link, SecondsText(link.busy_seconds), SecondsText(step), 100 * link.busy_seconds / step,
                          100 * link.hidden_seconds / link.copy_seconds);
  }
  absl::StrAppend(&text, "  ", WithoutIt(setting, plan), "\n");
  return text;
}

}  // namespace motley::planner
