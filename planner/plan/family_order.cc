#include "planner/plan/family_order.h"

#include <algorithm>

namespace motley::planner {
namespace {

// All rounds of a virtual stage together.
std::vector<Action> Layered(const StagePlace& place) {
  std::vector<Action> actions = ForwardOrder(place);
  for (auto v = place.virtual_stages.rbegin(); v != place.virtual_stages.rend(); ++v) {
    actions.push_back({ActionKind::kBackward, *v, 0, place.rounds});
  }
  return actions;
}

// Megatron-LM's virtual stages: as many microbatches as there are stages pass a virtual stage before the next. With one virtual
// stage a stage it is the order of the microbatches.
std::vector<Action> Pass(const StagePlace& place, ActionKind kind) {
  std::vector<int32_t> virtual_stages = place.virtual_stages;
  if (kind != ActionKind::kForward) std::reverse(virtual_stages.begin(), virtual_stages.end());
  std::vector<Action> actions;
  for (int64_t first = 0; first < place.rounds; first += place.num_stages) {
    const int64_t last = std::min(place.rounds, first + place.num_stages);
    for (const int32_t v : virtual_stages) {
      for (int64_t round = first; round < last; ++round) actions.push_back({kind, v, round, round + 1});
    }
  }
  return actions;
}

// Forwards up to the limit, then a backward and a forward in turn, in the end the backwards that are left. ZB-H1 (Qi et al.,
// Zero Bubble Pipeline Parallelism, section 2.2): stage s puts off the weights' gradients by s backwards, which takes the memory
// of 1F1B's first stage.
std::vector<Action> Alternating(const StagePlace& place, bool splits) {
  const std::vector<Action> forwards = Pass(place, ActionKind::kForward);
  const std::vector<Action> backwards = Pass(place, splits ? ActionKind::kInputGradient : ActionKind::kBackward);
  const auto limit = static_cast<size_t>(std::max<int64_t>(1, place.limit));
  const auto delay = static_cast<size_t>(std::min(place.index, place.rounds));
  std::vector<Action> actions;
  size_t next = 0, weights = 0;
  const auto add_weights = [&] {
    Action action = backwards[weights++];
    action.kind = ActionKind::kWeightGradient;
    actions.push_back(action);
  };
  for (size_t b = 0; b < backwards.size(); ++b) {
    while (next < forwards.size() && next - b < limit) actions.push_back(forwards[next++]);
    actions.push_back(backwards[b]);
    if (splits && b >= delay) add_weights();
  }
  while (splits && weights < backwards.size()) add_weights();
  return actions;
}

}  // namespace

std::vector<Action> FamilyOrder(ScheduleFamily family, const StagePlace& place) {
  const ScheduleTraits& traits = TraitsOf(family);
  return traits.by_ministage ? Layered(place) : Alternating(place, traits.splits_backward);
}

std::vector<Action> OrderByVirtualStage(ScheduleFamily family, const StagePlace& place) {
  const bool splits = TraitsOf(family).splits_backward;
  std::vector<Action> actions;
  for (const Action& together : Layered(place)) {
    const bool halved = splits && together.kind == ActionKind::kBackward;
    for (int64_t round = 0; round < place.rounds; ++round) {
      actions.push_back({halved ? ActionKind::kInputGradient : together.kind, together.virtual_stage, round, round + 1});
      if (halved) actions.push_back({ActionKind::kWeightGradient, together.virtual_stage, round, round + 1});
    }
  }
  return actions;
}

std::vector<Action> ForwardOrder(const StagePlace& place) {
  std::vector<Action> actions;
  for (const int32_t v : place.virtual_stages) actions.push_back({ActionKind::kForward, v, 0, place.rounds});
  return actions;
}

}  // namespace motley::planner
