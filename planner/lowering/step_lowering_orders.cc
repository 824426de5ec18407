#include "planner/lowering/step_lowering_orders.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/plan/family_order.h"

namespace motley::planner {
namespace {

bool Layered(const PlanView& view) { return TraitsOf(view.schedule).by_ministage; }

// Layered. A pipeline's neighbours wait for single microbatches at the two ends of a ministage; everywhere else the microbatches
// of a chunk are one piece of work, cut only where one of them waits for something of its own.
class LayeredOrder {
 public:
  LayeredOrder(const StageWork& work, int64_t count, bool alone, bool recomputes)
      : in_turn_(work.residency == Residency::kInTurn), count_(count), alone_(alone), recomputes_(recomputes) {
    const int chunks = static_cast<int>(work.chunks.size());
    for (int c = 0; c < chunks; ++c) Add(work, c, false, &order_.forward);
    for (int c = chunks - 1; c >= 0; --c) Add(work, c, true, &order_.backward);
    order_.limit = std::numeric_limits<int64_t>::max();
  }
  ActorOrder order() && { return std::move(order_); }

 private:
  void Add(const StageWork& work, int c, bool backward, std::vector<StepOp>* ops) const {
    const Chunk& chunk = work.chunks[c];
    if (!alone_ && (chunk.first || chunk.last)) {
      for (int64_t k = 0; k < count_; ++k) ops->push_back({c, k, k + 1});
      return;
    }
    const bool whole = in_turn_ && chunk.part.units() == 1;
    // The first backward waits for a gradient buffer, its recomputation does not; the last one is what reductions follow.
    const int64_t first = backward && whole && recomputes_ && chunk.part.layers > 0 ? std::min<int64_t>(1, count_) : 0;
    const int64_t last = backward && !whole ? std::max<int64_t>(0, count_ - 1) : count_;
    int64_t done = 0;
    for (const int64_t cut : {first, last, count_}) {
      if (cut > done) ops->push_back({c, std::exchange(done, cut), cut});
    }
  }

  const bool in_turn_;
  const int64_t count_;
  const bool alone_, recomputes_;
  ActorOrder order_;
};

// Operation for operation the family's own order, in which a stage's chunks are its virtual stages.
ActorOrder FixedOrder(ScheduleFamily family, const StageView& stage, int64_t count, int64_t chunks) {
  StagePlace place;
  place.index = stage.index;
  place.num_stages = stage.num_stages;
  for (int32_t c = 0; c < chunks; ++c) place.virtual_stages.push_back(c);
  place.rounds = count;
  place.limit = InFlight(family, stage.index, stage.num_stages, chunks, count);
  ActorOrder order;
  std::vector<size_t> backward_of(static_cast<size_t>(chunks * count), 0);
  for (const Action& action : FamilyOrder(family, place)) {
    size_t& backward = backward_of[static_cast<size_t>(action.virtual_stage * count + action.first)];
    if (action.kind == ActionKind::kWeightGradient) {
      order.turns.push_back({action.kind, backward});
      continue;
    }
    std::vector<StepOp>& pass = action.kind == ActionKind::kForward ? order.forward : order.backward;
    order.turns.push_back({action.kind, pass.size()});
    if (action.kind != ActionKind::kForward) backward = pass.size();
    pass.push_back({action.virtual_stage, action.first, action.last});
  }
  return order;
}

}  // namespace

StageWork WorkOf(const PlanView& view, int stage, bool tied) {
  const StageView& s = view.stages[stage];
  const std::vector<Element>& elements = view.pipelines[s.pipeline].elements;
  StageWork work;
  const bool gathers = s.shared() && s.plan->zero_stage == 3;
  if (gathers || s.offload_parameters) work.residency = Layered(view) ? Residency::kInTurn : Residency::kPerMicrobatch;
  const bool by_unit = Layered(view) && gathers;
  work.keeps_embedding = by_unit && tied && s.embedding && s.head;
  for (size_t e = 0; e < elements.size(); ++e) {
    const Element& element = elements[e];
    if (element.stage != stage) continue;
    const size_t begin = work.chunks.size();
    const int index = static_cast<int>(e);
    if (by_unit) {
      if (element.embedding) work.chunks.push_back({{true, element.first_layer, 0, false}, index});
      for (int64_t l = 0; l < element.layers; ++l) work.chunks.push_back({{false, element.first_layer + l, 1, false}, index});
      if (element.head) work.chunks.push_back({{false, element.first_layer + element.layers, 0, true}, index});
    } else {
      work.chunks.push_back({{element.embedding, element.first_layer, element.layers, element.head}, index});
    }
    work.chunks[begin].first = true;
    work.chunks.back().last = true;
  }
  return work;
}

ActorOrder OrderOf(const PlanView& view, int actor, const StageWork& work) {
  const ActorView& a = view.actors[actor];
  const StageView& stage = view.stages[a.stage];
  const int64_t count = a.count(), chunks = static_cast<int64_t>(work.chunks.size());
  if (Layered(view)) {
    bool recomputes = false;
    for (int r = 0; r < a.ranks_per_unit; ++r) recomputes |= !view.ranks[a.first_rank + r].recompute.empty();
    return LayeredOrder(work, count, stage.num_stages == 1, recomputes).order();
  }
  if (TraitsOf(view.schedule).fixed_order) return FixedOrder(view.schedule, stage, count, chunks);
  ActorOrder order;
  // Megatron-LM's virtual stages: as many microbatches as there are stages pass a ministage before the next.
  const int64_t group = stage.num_stages;
  for (int64_t first = 0; first < count; first += group) {
    const int64_t last = std::min(count, first + group);
    for (int64_t c = 0; c < chunks; ++c) {
      for (int64_t k = first; k < last; ++k) {
        order.forward.push_back({static_cast<int>(c), k, k + 1});
        order.backward.push_back({static_cast<int>(chunks - 1 - c), k, k + 1});
      }
    }
  }
  order.limit = TraitsOf(view.schedule).takes_in_flight ? MostInFlight(view, stage, count)
                                                        : InFlight(view.schedule, stage.index, stage.num_stages, chunks, count);
  order.weight_delay = std::min<int64_t>(WeightsPutOff(view.schedule, stage.index), count);
  return order;
}

}  // namespace motley::planner
