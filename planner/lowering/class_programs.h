// Programs for searches: one for each class of units that do the same (ActorView), over *blocks* of the model, each a run of its
// units. The same passes write them as write a rank's (program_writer.h); with classes and blocks of one they are the ranks' own.
// Nobody runs them: their graph prices a plan.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/plan/schedule.h"
#include "planner/plan/schedule_walk.h"
#include "planner/setting/setting.h"
#include "planner/view/part.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

struct ClassPrograms {
  // By actor of the view, which is what their ranks, peers and groups name. Samples are those of all of a class's units. What a
  // tensor-parallel unit computes names no group: the sums are inside.
  std::vector<Program> programs;
  std::vector<Part> blocks;                 // what of the model the programs' units are
  std::vector<std::vector<int>> stages_of;  // by group of the programs: whose units meet; into PlanView::stages
};

// `view`: with samples; `schedule` with `walks`: of its actors (MakeTrainingSchedule). Errors of StepsOfPipeline.
absl::StatusOr<ClassPrograms> LowerClasses(const Setting& setting, const PlanView& view, const Schedule& schedule,
                                           const std::vector<PipelineWalk>& walks);

}  // namespace motley::planner
