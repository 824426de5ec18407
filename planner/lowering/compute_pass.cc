#include <algorithm>
#include <vector>

#include "planner/lowering/stage_passes.h"

namespace motley::planner {

StageSteps ComputeSteps(const StageSchedule& schedule, const StageTraits& traits) {
  StageSteps result;
  result.group = traits.group;
  for (const Action& action : schedule.actions) {
    std::vector<int32_t> units = traits.units_of[action.virtual_stage];
    if (action.kind != ActionKind::kForward) std::reverse(units.begin(), units.end());
    const auto num_places = static_cast<int32_t>(units.size());
    for (int64_t round = action.first; round < (traits.by_block ? action.first + 1 : action.last); ++round) {
      for (int32_t i = 0; i < num_places; ++i) {
        result.steps.push_back(
            {action.kind, units[i], action.virtual_stage, i, num_places, traits.by_block ? kAllRounds : round});
      }
    }
  }
  return result;
}

}  // namespace motley::planner
