#include "planner/lowering/step_lowering_routes.h"

#include <algorithm>

namespace motley::planner {

Routes::Routes(const PlanView& view, const PipelineView& pipeline)
    : first_stage_(pipeline.first_stage), stages_(static_cast<size_t>(pipeline.num_stages)), slot_of_(view.actors.size()) {
  for (int s = 0; s < pipeline.num_stages; ++s) {
    std::vector<Slot>& slots = stages_[s];
    for (const int a : view.stages[first_stage_ + s].actors) {
      const ActorView& actor = view.actors[a];
      for (int64_t k = 0; k < actor.count(); ++k) {
        const int64_t begin = actor.begin[k];
        slots.push_back({a, k, begin, begin + actor.samples(k)});
      }
      slot_of_[a].resize(static_cast<size_t>(actor.count()));
    }
    std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.begin < b.begin; });
    for (size_t i = 0; i < slots.size(); ++i) {
      slot_of_[slots[i].actor][slots[i].k] = static_cast<int>(i);
    }
  }
}

Routes::Range Routes::Overlap(const Slot& slot, int to) const {
  const std::vector<Slot>& slots = SlotsOf(to);
  const auto first =
      std::partition_point(slots.begin(), slots.end(), [&slot](const Slot& other) { return other.end <= slot.begin; });
  const auto last = std::partition_point(first, slots.end(), [&slot](const Slot& other) { return other.begin < slot.end; });
  return {static_cast<int>(first - slots.begin()), static_cast<int>(last - slots.begin())};
}

}  // namespace motley::planner
