// Lowers a plan to programs, one for each rank: what the ranks of the epoch run. A function of plan and schedule alone: nothing
// here asks what anything costs.
//
// Each stage gets a script (stage_script.h) that says its buffers and collectives; here all ranks walk their scripts side by
// side, an instruction for each unit and microbatch, in the order of the schedule's logical times (planner/plan/schedule_walk.h).
// The walk is one order of all instructions of all ranks in which everything stands behind what it waits for, and every lane
// keeps it. So the programs come to their end with transfers that block, too.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// One program per rank, in the plan's order, each of which passes motley::Validate. `plan`'s devices are the setting's, and it
// has its training schedule (planner/scheduling/make_schedule.h). Errors of ValidateForEngine; FAILED_PRECONDITION: it has none.
absl::StatusOr<std::vector<Program>> LowerTraining(const Setting& setting, const Plan& plan);

// The same of the plan's validation schedule: forward only.
absl::StatusOr<std::vector<Program>> LowerEvaluation(const Setting& setting, const Plan& plan);

}  // namespace motley::planner
