#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/lowering/stage_passes.h"

namespace motley::planner {
namespace {

class ComputePass {
 public:
  ComputePass(const StageSchedule& schedule, const StageTraits& traits)
      : schedule_(schedule),
        traits_(traits),
        first_forward_(traits.units_of.size(), -1),
        last_gradients_(traits.units_of.size(), -1) {
    for (const Action& action : schedule.actions) {
      const auto v = static_cast<size_t>(action.virtual_stage);
      if (action.kind == ActionKind::kForward && first_forward_[v] < 0) first_forward_[v] = action.first;
      if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient)
        last_gradients_[v] = action.last - 1;
    }
  }

  StageSteps Run() {
    StageSteps result;
    result.group = traits_.group;
    for (const Action& action : schedule_.actions) {
      for (int64_t round = action.first; round < (traits_.by_block ? action.first + 1 : action.last); ++round) {
        AddRound(action, round, &result.steps);
      }
    }
    return result;
  }

 private:
  // kEnds: the first unit, those between, the last.
  enum class Joined { kNone, kEnds, kAll };

  Joined JoinedIn(const Action& action, int64_t round) const {
    if (!traits_.joins || traits_.by_block) return Joined::kNone;
    const auto v = static_cast<size_t>(action.virtual_stage);
    const bool is_forward = action.kind == ActionKind::kForward;
    const bool makes_gradients = !is_forward && action.kind != ActionKind::kInputGradient;
    const bool first_forward = is_forward && !traits_.streams && !traits_.alone && round == first_forward_[v];
    const bool comes = traits_.gathers_by_ministage ? round == action.first : first_forward;
    const bool goes = makes_gradients && !traits_.alone && (traits_.reduces_every_round || round == last_gradients_[v]);
    return comes || goes ? Joined::kNone : traits_.streams ? Joined::kEnds : Joined::kAll;
  }

  void AddRound(const Action& action, int64_t round, std::vector<StageStep>* steps) const {
    const std::vector<int32_t>& units = traits_.units_of[action.virtual_stage];
    const auto num_places = static_cast<int32_t>(units.size());
    const Joined joined = JoinedIn(action, round);
    for (int32_t place = 0, places = 1; place < num_places; place += places) {
      const bool is_between = place > 0 && place + 1 < num_places;
      places = joined == Joined::kAll ? num_places : joined == Joined::kEnds && is_between ? num_places - 2 : 1;
      const int32_t last = place + places - 1;
      const int32_t unit = action.kind == ActionKind::kForward ? units[place] : units[num_places - 1 - last];
      steps->push_back(
          {action.kind, unit, action.virtual_stage, place, num_places, traits_.by_block ? kAllRounds : round, places - 1});
    }
  }

  const StageSchedule& schedule_;
  const StageTraits& traits_;
  std::vector<int64_t> first_forward_, last_gradients_;  // rounds, by virtual stage
};

}  // namespace

StageSteps ComputeSteps(const StageSchedule& schedule, const StageTraits& traits) { return ComputePass(schedule, traits).Run(); }

}  // namespace motley::planner
