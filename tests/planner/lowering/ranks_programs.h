// Programs of a plan's ranks, scheduled, lowered and walked to their end.
#pragma once

#include <vector>

#include "gtest/gtest.h"
#include "planner/graph/program_walk.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/each_rank.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {

// The programs of the plan's ranks, which come to their end together.
inline std::vector<Program> RanksProgramsOf(const Setting& setting, Plan plan) {
  auto schedule = MakeTrainingSchedule(setting, plan);
  EXPECT_TRUE(schedule.ok()) << schedule.status() << "\n" << ToText(plan);
  if (!schedule.ok()) return {};
  plan.training = *std::move(schedule);
  auto programs = LowerTraining(setting, plan);
  EXPECT_TRUE(programs.ok()) << programs.status() << "\n" << ToText(plan);
  if (!programs.ok()) return {};
  EXPECT_EQ(CheckOrder(*programs), absl::OkStatus()) << ToText(plan);
  return *std::move(programs);
}

// The same of a validation pass with the plan's own microbatches.
inline std::vector<Program> RanksEvaluationsOf(const Setting& setting, const Plan& plan) {
  std::vector<std::vector<int64_t>> microbatches;
  ForEachUnit(plan, [&](const UnitPlan& unit) { microbatches.push_back(unit.microbatches); });
  auto programs = ScheduleAndLowerEvaluation(setting, plan, microbatches);
  EXPECT_TRUE(programs.ok()) << programs.status() << "\n" << ToText(plan);
  if (!programs.ok()) return {};
  EXPECT_EQ(CheckOrder(*programs), absl::OkStatus()) << ToText(plan);
  return *std::move(programs);
}

}  // namespace motley::planner
