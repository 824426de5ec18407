#include "planner/search/best_plan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/pricing/worst_memory.h"
#include "planner/util/lack_of_memory.h"

namespace motley::planner {
namespace {

constexpr double kGuessError = 1.1;  // a guess may be so much too long
// Of all step graphs together; about half a second. A stage makes about six for each microbatch and ministage.
constexpr size_t kMostTasks = 200'000, kTasksAMicrobatch = 6;

struct Guess {
  bool too_big = false;
  double seconds = 0;
  size_t index = 0;
  friend auto operator<=>(const Guess&, const Guess&) = default;
};

size_t ExpectedTasks(const Plan& plan) {
  size_t tasks = 0;
  ForEachStage(plan, [&tasks](const StagePlan& stage) {
    size_t most = 0;
    for (const UnitPlan& unit : stage.units) most = std::max(most, unit.microbatches.size());
    tasks += kTasksAMicrobatch * most * stage.ministages.size();
  });
  return tasks;
}

absl::Status LackOf(const Evaluation& evaluation) {
  if (evaluation.does_not_fit.empty()) return absl::OkStatus();
  return LackOfMemory(evaluation.lacking_bytes, absl::StrCat("no plan fits: ", absl::StrJoin(evaluation.does_not_fit, "; ")));
}

// OK: it fits. `plan` has its predictions.
absl::Status LackAsRun(const Setting& setting, const Plan& plan) {
  if (WorstMemory(setting, plan) <= kFarFromFull) return absl::OkStatus();
  const absl::Status fits = FitsAsScheduled(setting, plan);
  if (fits.ok() || absl::IsResourceExhausted(fits)) return fits;
  return absl::ResourceExhaustedError(absl::StrCat("no plan fits: ", fits.message()));
}

}  // namespace

absl::StatusOr<Plan> BestPlan(const Setting& setting, std::vector<LikedPlan> candidates, size_t simulations) {
  std::vector<Guess> order;
  for (size_t i = 0; i < candidates.size(); ++i) {
    MOTLEY_ASSIGN_OR_RETURN(const QuickPrice price, EstimatePlan(setting, candidates[i].plan));
    order.push_back({price.worst_memory > 1, std::max(price.step_seconds, candidates[i].seconds), i});
  }
  std::sort(order.begin(), order.end());

  Plan best;
  bool found = false;
  size_t simulated = 0, tasks = 0;
  absl::Status lack;  // the nearest miss
  const auto note = [&lack](absl::Status why) {
    if (lack.ok() || IsNearerMiss(why, lack)) lack = std::move(why);
  };
  for (const Guess& guess : order) {
    if (found && (guess.too_big || guess.seconds >= kGuessError * best.predicted.step_seconds)) break;
    if (found && simulated >= simulations) break;
    if (found && tasks + ExpectedTasks(candidates[guess.index].plan) > kMostTasks) continue;  // a smaller one may follow
    MOTLEY_ASSIGN_OR_RETURN(Evaluation evaluation, Evaluate(setting, std::move(candidates[guess.index].plan)));
    ++simulated;
    tasks += evaluation.graph.tasks.size();
    if (absl::Status why = LackOf(evaluation); !why.ok()) {
      note(std::move(why));
      continue;
    }
    if (found && evaluation.plan.predicted.step_seconds >= best.predicted.step_seconds) continue;
    if (absl::Status why = LackAsRun(setting, evaluation.plan); !why.ok()) {
      note(std::move(why));
      continue;
    }
    best = std::move(evaluation.plan);
    found = true;
  }
  if (!found && lack.ok()) return absl::ResourceExhaustedError("no plan fits: there is no plan to try");
  if (!found) return lack;
  return best;
}

absl::StatusOr<Plan> BestPlan(const Setting& setting, std::vector<Plan> candidates, size_t simulations) {
  std::vector<LikedPlan> liked;
  for (Plan& plan : candidates) liked.push_back({0, std::move(plan)});
  return BestPlan(setting, std::move(liked), simulations);
}

absl::StatusOr<Plan> FasterPlan(const Setting& setting, absl::StatusOr<Plan> a, absl::StatusOr<Plan> b) {
  if (!b.ok()) return a;
  if (!a.ok()) return b;
  std::vector<Contender> contenders = {{&*a}, {&*b}};
  MOTLEY_ASSIGN_OR_RETURN(const size_t faster, FindFastest(setting, &contenders));
  return faster == 0 ? std::move(a) : std::move(b);
}

}  // namespace motley::planner
