// What is alike in a plan, so that a search changes it together: pipelines of one shape, and in their stages units of one make.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace motley::planner {

// Pipelines with the same layers and, stage by stage, the same units in the same order.
struct PipelineClass {
  std::vector<size_t> pipelines;  // ascending
};
std::vector<PipelineClass> PipelineClassesOf(const Plan& plan);

// Units with the same cards, tensor-parallel shares, recomputation and microbatches, in one stage of a class of pipelines.
struct UnitClass {
  std::vector<std::pair<size_t, size_t>> places;  // pipeline, unit; ascending
  size_t stage = 0;
};
// In the order of their first places.
std::vector<UnitClass> UnitClassesOf(const Plan& plan);

// The class's units in `plan`, which has the shape of the one that they were found in.
template <typename Function>
void ForEachUnit(const UnitClass& units, Plan* plan, Function function) {
  for (const auto& [pipeline, unit] : units.places) function(plan->pipelines[pipeline].stages[units.stage].units[unit]);
}
inline const UnitPlan& FirstUnit(const UnitClass& units, const Plan& plan) {
  return plan.pipelines[units.places[0].first].stages[units.stage].units[units.places[0].second];
}
// "4 x T4 in stage 1".
std::string Place(const UnitClass& units, const Plan& plan);

}  // namespace motley::planner
