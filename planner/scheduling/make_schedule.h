// Makes the schedules of a finished plan: deals the samples with the costs of the moment, orders each stage as its family says,
// and mends orders in which ranks of unlike microbatches would wait for each other.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/plan/schedule_walk.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// With the walk of each pipeline.
struct WalkedSchedule {
  Schedule schedule;
  std::vector<PipelineWalk> walks;
};
// Of a training step, whose members are `view`'s actors: ranks, or classes of units that do the same. `view`: of `plan`, with
// samples. The result passes ValidateSchedule. FAILED_PRECONDITION: no order is known in which the members do not wait for each
// other (names them).
absl::StatusOr<WalkedSchedule> MakeTrainingSchedule(const PlanView& view, const Plan& plan);

// The plan's own, walked.
WalkedSchedule WalkedTraining(const Plan& plan);

// Of the validation pass: forward only, layered, with `microbatches` by unit in the plan's order in place of the plan's. In every
// stage they add up to the same number of samples.
absl::StatusOr<Schedule> MakeValidationSchedule(const Setting& setting, const Plan& plan,
                                                const std::vector<std::vector<int64_t>>& microbatches);

}  // namespace motley::planner
