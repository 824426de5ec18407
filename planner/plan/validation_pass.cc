#include "planner/plan/validation_pass.h"

#include "planner/plan/each_rank.h"

namespace motley::planner {

Plan ValidationPass(Plan plan, const std::vector<std::vector<int64_t>>& microbatches) {
  plan.schedule = ScheduleFamily::kLayered;
  plan.training.reset();
  plan.validation.reset();
  size_t unit = 0;
  ForEachUnit(plan, [&](UnitPlan& of_plan) { of_plan.microbatches = microbatches[unit++]; });
  return plan;
}

std::vector<std::vector<int64_t>> MicrobatchesOf(const Schedule& schedule) {
  std::vector<std::vector<int64_t>> microbatches;
  for (const PipelineSchedule& pipeline : schedule.pipelines) {
    for (const StageSchedule& stage : pipeline.stages) {
      for (const MemberMicrobatches& member : stage.members) {
        std::vector<int64_t>& sizes = microbatches.emplace_back();
        for (const ScheduledMicrobatch& microbatch : member) sizes.push_back(microbatch.samples);
      }
    }
  }
  return microbatches;
}

}  // namespace motley::planner
