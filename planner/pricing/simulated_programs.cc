#include "planner/pricing/simulated_programs.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/lowering/model_blocks.h"
#include "planner/lowering/program_writer.h"
#include "planner/scheduling/make_schedule.h"

namespace motley::planner {
namespace {

// Whether stages have sums of their own beside those with other pipelines.
bool SumsInTurn(const PlanView& view) {
  return view.pipelines.size() > 1 && std::any_of(view.stages.begin(), view.stages.end(), [&view](const StageView& stage) {
           return stage.shared() && ZeroAsRun(view, stage) >= 2;
         });
}

absl::StatusOr<SimulatedPrograms> Simulate(const Setting& setting, const ResolvedPlan& resolved, Schedule schedule,
                                           const std::vector<PipelineWalk>& walks) {
  SimulatedPrograms result;
  MOTLEY_ASSIGN_OR_RETURN(result.programs, LowerTraining(setting, resolved, schedule, walks));
  MOTLEY_ASSIGN_OR_RETURN(result.priced, GraphOfPrograms(setting, resolved, result.programs));
  MOTLEY_ASSIGN_OR_RETURN(result.timeline, Run(result.priced.graph));
  result.schedule = std::move(schedule);
  return result;
}

}  // namespace

absl::StatusOr<SimulatedPrograms> SimulatePrograms(const Setting& setting, const ResolvedPlan& resolved) {
  if (resolved.plan->training) {
    WalkedSchedule walked = WalkedTraining(*resolved.plan);
    return Simulate(setting, resolved, std::move(walked.schedule), walked.walks);
  }
  MOTLEY_ASSIGN_OR_RETURN(WalkedSchedule walked, MakeTrainingSchedule(resolved.view, *resolved.plan));
  if (!SumsInTurn(resolved.view)) return Simulate(setting, resolved, std::move(walked.schedule), walked.walks);
  absl::StatusOr<SimulatedPrograms> behind = Simulate(setting, resolved, walked.schedule, walked.walks);
  for (PipelineSchedule& pipeline : walked.schedule.pipelines) pipeline.sums_at_once = true;
  absl::StatusOr<SimulatedPrograms> at_once = Simulate(setting, resolved, std::move(walked.schedule), walked.walks);
  if (!at_once.ok()) return behind;
  return !behind.ok() || at_once->timeline.end < behind->timeline.end ? at_once : behind;
}

}  // namespace motley::planner
