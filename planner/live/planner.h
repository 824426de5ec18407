// What a job trains with: the plan of its strategy, or one given by hand, as motley plan makes and prices them, with what ranks
// run. Deterministic, pure; ties broken by device id.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "common/program/step_spans.h"
#include "planner/live/live_inputs.h"
#include "planner/plan/plan.h"

namespace motley::planner {

struct PlanResult {
  Plan plan;
  std::vector<Program> programs;          // by rank, validated, in an order that comes to its end
  std::vector<Program> evaluations;       // by rank: the validation pass; empty programs when the job has none
  std::vector<LaneSeconds> lanes;         // by rank: of the simulated step
  std::vector<int64_t> card_contexts;     // by rank: of the plan's context what the device's profile says, without NCCL's buffers
  LiveInputs inputs;                      // what it was planned from
  std::vector<std::string> dropped_pins;  // each with why, where planner.pins_required is false
  std::string explanation;                // for people: plan, bound, what each kind of device does, what the numbers rest on
  std::string trace_json;                 // the simulated step for Perfetto
  double planning_seconds = 0;
};

// The plan that config.planner asks for: its strategy's, or the one in its plan_json. Where pins are not required and no plan
// keeps those whose devices are there, it is made without any.
// RESOURCE_EXHAUSTED: the model fits on no plan; says how many bytes are missing, where, and the ways out. Or its programs are
// too long to be sent (program_size.h). INVALID_ARGUMENT: unknown strategy (names the known ones); a given plan that breaks a
// rule, is of another batch, names a device that is not there. UNIMPLEMENTED: the engine does not run such plans yet.
absl::StatusOr<PlanResult> MakePlan(const PlannerInput& input);

}  // namespace motley::planner
