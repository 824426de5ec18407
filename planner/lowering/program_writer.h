// Lowers a plan to programs, one for each rank: what the ranks of the epoch run.
//
// The order in which every rank computes is StepEngine's, of the plan's step graph with each rank an actor of its own: the same
// samples, orders and routes that the plan was priced with. Each stage gets a script (stage_script.h) that says its buffers and
// collectives; here all ranks walk their scripts side by side, an instruction for each unit and microbatch, one of them at a
// time. The walk is one order of all instructions of all ranks in which everything stands behind what it waits for, and every
// lane keeps it. So the programs come to their end with transfers that block, too.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// One program per rank, in the plan's order, each of which passes motley::Validate. `plan`'s devices are the setting's. Errors of
// ValidateForEngine; FAILED_PRECONDITION: ranks of the plan would wait for each other.
absl::StatusOr<std::vector<Program>> LowerTraining(const Setting& setting, const Plan& plan);

// The validation pass: forward only, layered, with `microbatches` by rank in place of the plan's. In every stage they add up to
// the same number of samples.
absl::StatusOr<std::vector<Program>> LowerEvaluation(const Setting& setting, const Plan& plan,
                                                     const std::vector<std::vector<int64_t>>& microbatches);

}  // namespace motley::planner
