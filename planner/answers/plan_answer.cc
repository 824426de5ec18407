#include "planner/answers/plan_answer.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/in_parallel.h"
#include "common/base/status_macros.h"
#include "planner/answers/ways_out.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/price.h"
#include "planner/pricing/worst_memory.h"
#include "planner/setting/request_check.h"
#include "planner/util/lack_of_memory.h"

namespace motley::planner {
namespace {

// A strategy that compares evaluated plans brings their notes along.
void KeepOneOfEach(std::vector<std::string>* notes) {
  std::set<std::string> seen;
  std::erase_if(*notes, [&seen](const std::string& note) { return !seen.insert(note).second; });
}

}  // namespace

void CompleteUnused(const Setting& setting, Plan* plan) {
  std::set<DeviceId> named;
  ForEachRank(*plan, [&named](const RankPlan& rank) { named.insert(rank.device); });
  for (const UnusedDevice& unused : plan->unused) named.insert(unused.device);
  for (const ClusterDevice& device : setting.cluster.devices) {
    if (named.insert(device.id).second) plan->unused.push_back({device.id, "the plan is complete without it"});
  }
  for (const UnusedDevice& excluded : setting.excluded) {
    if (named.insert(excluded.device).second) plan->unused.push_back(excluded);
  }
}

absl::StatusOr<Evaluation> PlanAndEvaluate(const Setting& setting, const CatalogEntry& strategy) {
  MOTLEY_ASSIGN_OR_RETURN(Plan plan, strategy.plan(setting));
  if (plan.strategy.empty()) plan.strategy = std::string(strategy.name);
  MOTLEY_RETURN_IF_ERROR(FollowsRequest(setting, plan, false));
  plan.cluster = setting.cluster.name;
  plan.cluster_file = setting.cluster.file;
  plan.model = setting.workload.model_name;
  MOTLEY_ASSIGN_OR_RETURN(Evaluation evaluation, Price(setting, std::move(plan)));
  if (!evaluation.does_not_fit.empty()) {
    return LackOfMemory(evaluation.lacking_bytes, absl::StrCat("strategy ", std::string(strategy.name),
                                                               ": no plan fits: ", absl::StrJoin(evaluation.does_not_fit, "; ")));
  }
  CompleteUnused(setting, &evaluation.plan);
  KeepOneOfEach(&evaluation.plan.predicted.notes);
  return evaluation;
}

absl::StatusOr<PlanAnswer> AnswerPlan(const Setting& setting, const LatencyBook* book) {
  const absl::Time start = absl::Now();
  MOTLEY_ASSIGN_OR_RETURN(const CatalogEntry strategy, FindInCatalog(setting.request.strategy));
  absl::StatusOr<Evaluation> evaluation = PlanAndEvaluate(setting, strategy);
  if (absl::IsResourceExhausted(evaluation.status())) {
    std::optional<absl::Duration> left;
    if (setting.request.deadline) left = *setting.request.deadline - (absl::Now() - start);
    return NothingFits(setting, book, evaluation.status(), left);
  }
  MOTLEY_RETURN_IF_ERROR(evaluation.status());
  PlanAnswer result;
  result.evaluation = *std::move(evaluation);
  result.bound = FindLowerBound(setting);
  result.evaluation.plan.predicted.lower_bound_seconds = result.bound.seconds;
  result.planning_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

std::vector<ComparisonRow> Compare(const Setting& setting, const ComparisonProgress& progress) {
  const LowerBound bound = FindLowerBound(setting);
  const std::vector<CatalogEntry>& strategies = Catalog();
  std::vector<ComparisonRow> rows(strategies.size());
  absl::Mutex mutex;
  int done = 0;
  InParallel(rows.size(), [&](size_t i) {
    const absl::Time start = absl::Now();
    ComparisonRow& row = rows[i];
    row.strategy = std::string(strategies[i].name);
    row.fidelity = setting.request.fidelity;
    absl::StatusOr<Evaluation> evaluation = PlanAndEvaluate(setting, strategies[i]);
    row.status = evaluation.status();
    if (evaluation.ok()) {
      row.plan = std::move(evaluation->plan);
      row.plan.predicted.lower_bound_seconds = bound.seconds;
      row.worst_memory = WorstMemory(setting, row.plan);
      row.runs = FindRunsHere(setting, row.plan);
    }
    row.planning_seconds = absl::ToDoubleSeconds(absl::Now() - start);
    if (!progress) return;
    const absl::MutexLock lock(&mutex);
    progress(++done, static_cast<int>(rows.size()));
  });
  return rows;
}

}  // namespace motley::planner
