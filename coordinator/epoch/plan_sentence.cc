#include "coordinator/epoch/plan_sentence.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "planner/plan/each_rank.h"

namespace motley::coordinator {

std::string PlanSentence(const Prepared& prepared) {
  const planner::PlanResult& result = prepared.plan;
  const planner::Plan& plan = result.plan;
  int64_t ranks = 0;
  planner::ForEachRank(plan, [&](const planner::RankPlan&) { ++ranks; });
  std::string text =
      absl::StrFormat("%s on %s: %.3f s a step, %.0f tokens/s predicted, bound by %s; planned in %.0f ms; ", plan.strategy,
                      Count(ranks, "device"), plan.predicted.step_seconds, plan.predicted.tokens_per_second,
                      plan.predicted.binding_constraint, result.planning_seconds * 1e3);
  if (prepared.resume_from.empty()) {
    absl::StrAppend(&text, "from the initial weights");
  } else if (prepared.initial) {
    absl::StrAppend(&text, "from the weights of ", prepared.resume_from);
  } else {
    absl::StrAppend(&text, "from step ", prepared.start_step, " (", prepared.resume_from,
                    prepared.adopted.empty() ? ")" : ", which another job made and this one adopts)");
  }
  for (const planner::UnusedDevice& unused : plan.unused) {
    absl::StrAppend(&text, "; ", unused.device.value(), " is not used: ", unused.because);
  }
  return text;
}

}  // namespace motley::coordinator
