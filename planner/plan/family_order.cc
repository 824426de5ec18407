#include "planner/plan/family_order.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

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
  actions.reserve(virtual_stages.size() * static_cast<size_t>(place.rounds));
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
// of 1F1B's first stage. Before the first backward, whatever the limit, come the forwards of its microbatch. A family of one
// virtual stage a stage takes its turns by whole microbatches: a stage alone may have several, and then passes a microbatch
// through all of them, forward and backward, before it lets in the next.
std::vector<Action> Alternating(const StagePlace& place, const ScheduleTraits& traits) {
  const bool splits = traits.splits_backward;
  const std::vector<Action> forwards = Pass(place, ActionKind::kForward);
  const std::vector<Action> backwards = Pass(place, splits ? ActionKind::kInputGradient : ActionKind::kBackward);
  const size_t virtual_stages = place.virtual_stages.size(), together = traits.ministages == 1 ? virtual_stages : 1;
  const auto group = std::min(place.num_stages, place.rounds);
  const int64_t least = static_cast<int64_t>(virtual_stages - 1) * group + 1;
  const auto limit = static_cast<size_t>(std::max(least, place.limit));
  const auto delay = static_cast<size_t>(std::min(place.index, place.rounds));
  std::vector<Action> actions;
  actions.reserve((splits ? 3 : 2) * forwards.size());
  size_t next = 0, weights = 0;
  const auto add_weights = [&] {
    Action action = backwards[weights++];
    action.kind = ActionKind::kWeightGradient;
    actions.push_back(action);
  };
  for (size_t b = 0; b < backwards.size(); ++b) {
    while (b % together == 0 && next < forwards.size() && next - b < limit) actions.push_back(forwards[next++]);
    actions.push_back(backwards[b]);
    if (splits && b >= delay) add_weights();
  }
  while (splits && weights < backwards.size()) add_weights();
  return actions;
}

// ZB-V (the same, section 6), in the order of PyTorch's ScheduleZBVZeroBubble. The stage's first virtual stage is on the way down
// the stages, its second on the way back up. The order is that of 2 S - 1 rounds at least; of fewer the others are left out.
class ZeroBubbleV {
 public:
  explicit ZeroBubbleV(const StagePlace& place) : place_(place), rounds_(std::max(2 * place.num_stages - 1, place.rounds)) {}

  std::vector<Action> Order() {
    using enum ActionKind;
    const int64_t before = place_.index, left = place_.num_stages - place_.index;
    Repeat(2 * left - 1, {{kForward, 0}});
    Repeat(before, {{kForward, 1}, {kForward, 0}});
    Repeat(left, {{kForward, 1}, {kInputGradient, 1}, {kWeightGradient, 1}});
    while (Done(kForward, 1) < rounds_) {
      if (Done(kForward, 0) < rounds_) Add(kForward, 0);
      Repeat(1, {{kInputGradient, 0}, {kWeightGradient, 0}, {kForward, 1}, {kInputGradient, 1}, {kWeightGradient, 1}});
    }
    Repeat(before, {{kInputGradient, 0}, {kInputGradient, 1}});
    Repeat(left, {{kInputGradient, 0}, {kWeightGradient, 0}});
    Repeat(rounds_ - Done(kWeightGradient, 1), {{kWeightGradient, 1}});
    Repeat(rounds_ - Done(kWeightGradient, 0), {{kWeightGradient, 0}});
    return std::move(actions_);
  }

 private:
  int64_t& Done(ActionKind kind, size_t way) { return done_[static_cast<size_t>(kind)][way]; }
  void Add(ActionKind kind, size_t way) {
    const int64_t round = Done(kind, way)++;
    if (round < place_.rounds) actions_.push_back({kind, place_.virtual_stages[way], round, round + 1});
  }
  void Repeat(int64_t times, std::initializer_list<std::pair<ActionKind, size_t>> steps) {
    for (int64_t i = 0; i < times; ++i) {
      for (const auto& [kind, way] : steps) Add(kind, way);
    }
  }

  const StagePlace& place_;
  const int64_t rounds_;
  int64_t done_[4][2] = {};  // by kind, way
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Action> FamilyOrder(ScheduleFamily family, const StagePlace& place) {
  const ScheduleTraits& traits = TraitsOf(family);
  if (traits.by_ministage) return Layered(place);
  // One stage may have any number of ministages; nobody waits for it.
  if (traits.map == VirtualStageMap::kV && place.virtual_stages.size() == 2) return ZeroBubbleV(place).Order();
  return Alternating(place, traits);
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
