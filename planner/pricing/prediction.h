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

// Fills in what a rank keeps, by its number in the plan.
using BytesOfRank = absl::FunctionRef<void(size_t, RankPrediction*)>;
// In closed form. `in_flight`: forwards without their backward that it keeps at most; 0 = as the schedule's formula says.
MemoryByPurpose ClosedFormBytes(const Setting& setting, const PlanView& view, size_t r, int64_t in_flight);

// Fills in the memory of ranks and what does not fit. `view`: of evaluation->plan.
void CountMemory(const Setting& setting, const PlanView& view, BytesOfRank bytes_of, Evaluation* evaluation);

// Fills in all but the programs. `view`: of evaluation->plan; `timeline`: of the graph.
void Predict(const Setting& setting, const PlanView& view, StepGraph graph, Timeline timeline, BytesOfRank bytes_of,
             Evaluation* evaluation);

}  // namespace motley::planner
