// Lowers a plan to programs, one for each rank: what the ranks of the epoch run. A function of plan and schedule alone: nothing
// here asks what anything costs. A chain of passes (docs/inside/plan-to-step.md), each from a value to a value:
//
//     ComputeSteps      a stage's schedule as steps                      stage_passes.h
//     WithParameters    their parameter buffers, gathers, releases
//     WithGradients     their gradient buffers and reductions
//     WithRoomForSums, SliceOf          where units are tensor-parallel
//     MemberSteps       the microbatches of each member in them          transfer_pass.h
//     WithTransfers     who sends what to whom, and when
//     OperationsOf      what one rank does, in order                     rank_passes.h
//     WithCopies        what waits in host memory, and back
//     WithDependencies  the same, numbered, each with its `after`
//
// Pipelines have steps and transfers of their own, and meet in sums alone.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/plan/schedule_walk.h"
#include "planner/setting/setting.h"
#include "planner/view/resolved_plan.h"

namespace motley::planner {

// One program per rank, in the plan's order, each of which passes motley::Validate. The plan has its owned ranges; `walks`: of
// `schedule`, by pipeline. `asked`: ranks beside which the others' programs stay empty; none = all. Errors of WithTransfers.
absl::StatusOr<std::vector<Program>> LowerTraining(const Setting& setting, const ResolvedPlan& resolved, const Schedule& schedule,
                                                   const std::vector<PipelineWalk>& walks, const std::vector<bool>& asked = {});

// The same of the plan's validation schedule: forward only. FAILED_PRECONDITION: it has none.
absl::StatusOr<std::vector<Program>> LowerEvaluation(const Setting& setting, const Plan& plan);

}  // namespace motley::planner
