#include "planner/search/in_flight.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "planner/costs/memory_model.h"
#include "planner/plan/each_rank.h"
#include "planner/view/plan_view.h"

namespace motley::planner {
namespace {

bool Fits(const Setting& setting, const PlanView& view, const StageView& stage, int64_t in_flight) {
  for (const int a : stage.actors) {
    const ActorView& actor = view.actors[a];
    for (int r = 0; r < actor.ranks_per_unit; ++r) {
      const RankView& rank = view.ranks[actor.first_rank + r];
      RankDuty duty = DutyOf(view, rank);
      duty.in_flight = in_flight + WeightsPutOff(view.schedule, stage.index);
      if (MemoryOf(setting.costs, duty, *actor.microbatches).total() > setting.UsableBytes(rank.device)) return false;
    }
  }
  return true;
}

int64_t Rounds(const StagePlan& stage) {
  size_t rounds = 0;
  for (const UnitPlan& unit : stage.units) rounds = std::max(rounds, unit.microbatches.size());
  return static_cast<int64_t>(rounds);
}

// What the stage before keeps, in microbatches of a stage that has `rounds` of them: waiting for more would be in vain.
int64_t LetThrough(const PipelinePlan& pipeline, int stage, int64_t rounds) {
  const StagePlan& before = pipeline.stages[static_cast<size_t>(stage) - 1];
  const int64_t of = std::max<int64_t>(1, Rounds(before)), own = static_cast<int64_t>(pipeline.stages.size()) - stage + 1;
  const int64_t kept = before.in_flight > 0 ? before.in_flight : std::min(own, of);
  return (kept * rounds + of - 1) / of;
}

}  // namespace

Plan WithInFlight(const Setting& setting, Plan plan, double factor) {
  if (!TraitsOf(plan.schedule).takes_in_flight) return plan;
  ForEachStage(plan, [](StagePlan& stage) { stage.in_flight = 0; });
  const auto view = ViewOf(setting, plan, {.merge = true, .assign_samples = false});
  if (!view.ok() || factor <= 1) return plan;
  for (const StageView& stage : view->stages) {  // a pipeline's in order
    StagePlan& changed = plan.pipelines[stage.pipeline].stages[stage.index];
    const int64_t own = stage.num_stages - stage.index, rounds = Rounds(changed);
    if (stage.num_stages == 1 || own == 1 || own >= rounds) continue;  // the last stage waits for nobody
    int64_t fits = own, most = std::min(rounds, static_cast<int64_t>(std::ceil(factor * static_cast<double>(own))));
    if (stage.index > 0) most = std::min(most, LetThrough(plan.pipelines[stage.pipeline], stage.index, rounds));
    while (fits < most) {
      const int64_t middle = (fits + most + 1) / 2;
      if (Fits(setting, *view, stage, middle)) {
        fits = middle;
      } else {
        most = middle - 1;
      }
    }
    if (fits > own) changed.in_flight = fits;
  }
  return plan;
}

}  // namespace motley::planner
