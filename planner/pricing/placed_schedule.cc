#include "planner/pricing/placed_schedule.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/graph/program_graph.h"
#include "planner/lowering/model_blocks.h"
#include "planner/lowering/program_writer.h"
#include "planner/scheduling/make_schedule.h"
#include "planner/simulator/step_graph.h"
#include "planner/view/plan_view.h"

namespace motley::planner {
namespace {

// Whether stages have sums of their own beside those with other pipelines.
bool SumsInTurn(const PlanView& view) {
  return view.pipelines.size() > 1 && std::any_of(view.stages.begin(), view.stages.end(), [&view](const StageView& stage) {
           return stage.shared() && ZeroAsRun(view, stage) >= 2;
         });
}

// Of a step as it runs; infinity where it would not.
Picoseconds StepOf(const Setting& setting, const Plan& plan) {
  constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
  const absl::StatusOr<std::vector<Program>> programs = LowerTraining(setting, plan);
  if (!programs.ok()) return kNever;
  const absl::StatusOr<ProgramGraph> priced = GraphOfPrograms(setting, plan, *programs);
  if (!priced.ok()) return kNever;
  const absl::StatusOr<Timeline> timeline = Run(priced->graph);
  return timeline.ok() ? timeline->end : kNever;
}

Schedule WithSumsPlaced(const Setting& setting, const Plan& plan, Schedule schedule) {
  Plan behind = plan, at_once = plan;
  behind.training = schedule;
  for (PipelineSchedule& pipeline : schedule.pipelines) pipeline.sums_at_once = true;
  at_once.training = std::move(schedule);
  return *std::move(StepOf(setting, at_once) < StepOf(setting, behind) ? at_once : behind).training;
}

}  // namespace

absl::StatusOr<Schedule> PlacedSchedule(const Setting& setting, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(Schedule schedule, MakeTrainingSchedule(setting, plan));
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan, {.merge = false, .assign_samples = false}));
  if (!SumsInTurn(view)) return schedule;
  return WithSumsPlaced(setting, plan, std::move(schedule));
}

}  // namespace motley::planner
