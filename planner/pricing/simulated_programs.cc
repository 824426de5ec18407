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
  return std::any_of(view.stages.begin(), view.stages.end(),
                     [](const StageView& stage) { return stage.state.across && stage.state.ZeroAsRun() >= 2; });
}

absl::StatusOr<WrittenPrograms> Write(const Setting& setting, const ResolvedPlan& resolved, WalkedSchedule walked,
                                      const std::vector<bool>& asked = {}) {
  WrittenPrograms written;
  MOTLEY_ASSIGN_OR_RETURN(written.programs, LowerTraining(setting, resolved, walked.schedule, walked.walks, asked));
  written.schedule = std::move(walked.schedule);
  return written;
}

absl::StatusOr<SimulatedPrograms> Simulate(const Setting& setting, const ResolvedPlan& resolved, WalkedSchedule walked) {
  SimulatedPrograms result;
  MOTLEY_ASSIGN_OR_RETURN(result.written, Write(setting, resolved, std::move(walked)));
  MOTLEY_ASSIGN_OR_RETURN(result.priced, GraphOfPrograms(setting, resolved, result.written.programs));
  MOTLEY_ASSIGN_OR_RETURN(result.timeline, Run(result.priced.graph));
  return result;
}

absl::StatusOr<WalkedSchedule> ScheduleOf(const ResolvedPlan& resolved) {
  if (resolved.plan->training) return WalkedTraining(*resolved.plan);
  return MakeTrainingSchedule(resolved.view, *resolved.plan);
}

}  // namespace

absl::StatusOr<WrittenPrograms> WritePrograms(const Setting& setting, const ResolvedPlan& resolved,
                                              const std::vector<bool>& asked) {
  MOTLEY_ASSIGN_OR_RETURN(WalkedSchedule walked, ScheduleOf(resolved));
  return Write(setting, resolved, std::move(walked), asked);
}

absl::StatusOr<SimulatedPrograms> SimulatePrograms(const Setting& setting, const ResolvedPlan& resolved) {
  MOTLEY_ASSIGN_OR_RETURN(WalkedSchedule walked, ScheduleOf(resolved));
  if (resolved.plan->training || !SumsInTurn(resolved.view)) return Simulate(setting, resolved, std::move(walked));
  absl::StatusOr<SimulatedPrograms> behind = Simulate(setting, resolved, walked);
  for (PipelineSchedule& pipeline : walked.schedule.pipelines) pipeline.sums_at_once = true;
  absl::StatusOr<SimulatedPrograms> at_once = Simulate(setting, resolved, std::move(walked));
  if (!at_once.ok()) return behind;
  return !behind.ok() || at_once->timeline.end < behind->timeline.end ? at_once : behind;
}

}  // namespace motley::planner
