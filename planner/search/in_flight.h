// Microbatches that stages keep under 1F1B and zero bubble (StagePlan::in_flight): with more than the schedule's own number a
// stage runs ahead while slow links carry what it waits for (eager 1F1B: Zhuang et al., "On Optimizing the Communication of Model
// Parallelism", MLSys 2023, section 4; there 2 (stages - stage) - 1 for all, here as many as help and memory holds).
#pragma once

#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Every stage keeps `factor` times as many as the schedule's own number, as far as the memory of its ranks and the microbatches
// of its units and what the stage before lets through go, and never fewer than that. 1 = the schedule's own. Other schedules and
// pipelines of one stage are left as they are.
Plan WithInFlight(const Setting& setting, Plan plan, double factor);

}  // namespace motley::planner
