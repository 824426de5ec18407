// What is predicted of a plan, once its step is a graph: memory, seconds, rates, their ranges, and what binds. Part of Evaluate
// (the graph of classes' programs) and of Price (the graph of the ranks' programs).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "planner/costs/memory_model.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/setting.h"
#include "planner/simulator/step_graph.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// INVALID_ARGUMENT: the plan is for another batch, length or type than the setting's.
absl::Status CheckWorkload(const Setting& setting, const Plan& plan);

// Forwards without their backward that a rank keeps at most.
using InFlightOfRank = absl::FunctionRef<int64_t(const RankView&, const RankDuty&)>;
// Corrects what the ledger says of a rank, by its number and duty.
using CorrectMemory = absl::FunctionRef<void(size_t, const RankDuty&, MemoryByPurpose*)>;

// Runs the graph and fills in all but the programs. `view`: of evaluation->plan. Errors of Run.
absl::Status Predict(const Setting& setting, const PlanView& view, StepGraph graph, InFlightOfRank in_flight_of,
                     CorrectMemory correct, Evaluation* evaluation);

}  // namespace motley::planner
