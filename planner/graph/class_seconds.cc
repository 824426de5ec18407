#include "planner/graph/class_seconds.h"

#include <algorithm>

namespace motley::planner {
namespace {

void Worst(const KindSeconds& other, KindSeconds* worst) {
  worst->embedding = std::max(worst->embedding, other.embedding);
  worst->layer = std::max(worst->layer, other.layer);
  worst->head = std::max(worst->head, other.head);
}

void Worst(const PassSeconds& other, PassSeconds* worst) {
  for (KindSeconds PassSeconds::*pass :
       {&PassSeconds::forward, &PassSeconds::backward, &PassSeconds::backward_input, &PassSeconds::backward_weight}) {
    Worst(other.*pass, &(worst->*pass));
  }
  worst->layer_recompute = std::max(worst->layer_recompute, other.layer_recompute);
}

}  // namespace

PassSeconds SecondsOf(const Costs& costs, const RankView& rank, int64_t microbatch) {
  const auto m = static_cast<double>(microbatch);
  const double share = rank.plan->tp_share;
  using Pass = double (Costs::*)(int, UnitKind, double, double) const;
  const auto of = [&](Pass pass) {
    return KindSeconds{(costs.*pass)(rank.kind, UnitKind::kEmbedding, m, share),
                       (costs.*pass)(rank.kind, UnitKind::kLayer, m, share), (costs.*pass)(rank.kind, UnitKind::kHead, m, share)};
  };
  PassSeconds seconds;
  seconds.forward = of(&Costs::ForwardSeconds);
  seconds.backward = of(&Costs::BackwardSeconds);
  seconds.backward_input = of(&Costs::BackwardInputSeconds);
  seconds.backward_weight = of(&Costs::BackwardWeightSeconds);
  if (!rank.recompute.empty()) {
    seconds.layer_recompute = costs.RecomputeSeconds(rank.kind, UnitKind::kLayer, rank.recompute, m, share);
  }
  return seconds;
}

PassSeconds SecondsTable::Of(int actor, int64_t microbatch) {
  std::vector<Entry>& entries = actors_[actor];
  for (const Entry& entry : entries) {
    if (entry.microbatch == microbatch) return entry.seconds;
  }
  const ActorView& a = view_.actors[actor];
  Entry entry{microbatch, {}};
  for (int r = 0; r < a.ranks_per_unit; ++r) {
    Worst(SecondsOf(setting_.costs, view_.ranks[a.first_rank + r], microbatch), &entry.seconds);
  }
  entries.push_back(entry);
  return entries.back().seconds;
}

PassReductions SecondsTable::ReductionsOf(int actor) const { return {}; }

double OwnedPart(const PlanView& view, const RankView& rank) {
  const StageView& stage = view.stages[rank.stage];
  const double part = stage.plan->zero_stage == 0 ? rank.plan->tp_share : rank.share;
  return view.pipelines_zero_stage > 0 ? part / static_cast<double>(view.pipelines.size()) : part;
}

double SecondsTable::OptimizerSeconds(int actor, double elements) const {
  const ActorView& a = view_.actors[actor];
  double slowest = 0;
  for (int r = 0; r < a.ranks_per_unit; ++r) {
    const RankView& rank = view_.ranks[a.first_rank + r];
    slowest = std::max(slowest, setting_.costs.OptimizerSeconds(rank.kind, OwnedPart(view_, rank) * elements));
  }
  return slowest;
}

}  // namespace motley::planner
