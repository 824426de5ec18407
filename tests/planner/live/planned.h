// Parts of what a plan says.
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/live/planner.h"

namespace motley::planner {

inline const std::vector<UnitPlan>& UnitsOf(const PlanResult& result) { return result.plan.pipelines[0].stages[0].units; }

inline double StepOf(PlannerInput input, const std::string& strategy) {
  input.config.planner.strategy = strategy;
  const auto result = MakePlan(input);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->plan.predicted.step_seconds : 0;
}

}  // namespace motley::planner
