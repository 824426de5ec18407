// Plans as `-o json` prints them: the plan's document (docs/use/plan-language.md) with what follows from it under "report", which
// readers of plans pass over.
#pragma once

#include <vector>

#include "coordinator/client/json.h"
#include "coordinator/client/screen.h"
#include "planner/answers/node_worth.h"
#include "planner/answers/plan_answer.h"
#include "planner/answers/sensitivity.h"
#include "planner/plan/plan.h"

namespace motley::client {

// {"ranks": [...]} to begin with: one flat row for each rank, where the plan itself is nested.
Json ReportOf(const planner::Plan& plan);
Json ToJson(const planner::LowerBound& bound);
Json ToJson(const planner::Sensitivity& sensitivity);
// {"without": [{"without_any_of": [...], "step_seconds"}], "best_machine", "runs_here"}, or in their place why there is none.
Json ToJson(const planner::Worth& worth);
Json ToJson(const planner::MemoryByPurpose& memory);
// {"ok": true, "step_seconds": the plan's}, or {"ok": false, "why": ...}.
Json ToJson(const planner::RunsHere& runs, const planner::Plan& plan);
// One object for each row; rows without a plan say why.
Json ToJson(const std::vector<planner::ComparisonRow>& rows);

void PrintPlan(std::ostream& out, const planner::Plan& plan, Json report);
// A line for each row, the fastest first; why there is no plan stands beneath. Columns that say nothing are left out. RUNS HERE
// is "yes" where the step is as it would run, else the seconds of that, or "no".
void PrintComparison(std::ostream& out, const Screen& screen, const std::vector<planner::ComparisonRow>& rows);
// For an explanation: what the other strategies would have come to, against `plan`, the fastest first; those without a plan say
// why.
void PrintOthers(std::ostream& out, const std::vector<planner::ComparisonRow>& rows, const planner::Plan& plan);

}  // namespace motley::client
