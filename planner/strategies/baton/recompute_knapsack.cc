#include "planner/strategies/baton/recompute_knapsack.h"

#include <algorithm>

#include "planner/costs/layer_operators.h"

namespace motley::planner {
namespace {

bool Before(const RecomputeOption& a, const RecomputeOption& b) {
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  if (a.kept_bytes != b.kept_bytes) return a.kept_bytes < b.kept_bytes;
  return a.ops < b.ops;
}

// Without what keeps no less for no less time. `options` sorted.
std::vector<RecomputeOption> Undominated(const std::vector<RecomputeOption>& options) {
  std::vector<RecomputeOption> kept;
  for (const RecomputeOption& option : options) {
    if (kept.empty() || option.kept_bytes < kept.back().kept_bytes) kept.push_back(option);
  }
  return kept;
}

}  // namespace

std::vector<RecomputeOption> RecomputeFrontier(const std::vector<RecomputeItem>& items) {
  double all_bytes = 0;
  for (const RecomputeItem& item : items) all_bytes += item.saved_bytes;
  std::vector<RecomputeOption> frontier = {{OpSet::None(), 0, all_bytes}};
  for (const RecomputeItem& item : items) {
    std::vector<RecomputeOption> both = frontier;
    for (const RecomputeOption& option : frontier) {
      both.push_back({option.ops | item.ops, option.seconds + item.seconds, option.kept_bytes - item.saved_bytes});
    }
    std::sort(both.begin(), both.end(), Before);
    frontier = Undominated(both);
  }
  return frontier;
}

std::vector<RecomputeItem> RecomputeItems(const Costs& costs, int kind, double samples, double share, bool with_reduction) {
  const double nothing = static_cast<double>(costs.SavedBytes(kind, UnitKind::kLayer, OpSet::None(), samples, share));
  const FamilyTraits& traits = TraitsOf(costs.workload().model.family);
  std::vector<RecomputeItem> items;
  OpSet seen;
  for (const Costs::OperatorCost& cost : costs.Operators(kind)) {
    const OpSet ops = RecomputedWith(OpSet::None().With(cost.op), traits);
    if (seen.Has(cost.op) || (!with_reduction && ops.Has(Op::kAttnOut))) continue;
    seen = seen | ops;
    const double freed = nothing - static_cast<double>(costs.SavedBytes(kind, UnitKind::kLayer, ops, samples, share));
    if (freed > 0) items.push_back({ops, costs.RecomputeSeconds(kind, UnitKind::kLayer, ops, samples, share), freed});
  }
  return items;
}

std::vector<RecomputeOption> FrontierOf(const std::vector<OpSet>& ways, const Costs& costs, int kind, double samples,
                                        double share) {
  std::vector<RecomputeOption> options;
  for (const OpSet ops : ways) {
    options.push_back({ops, costs.RecomputeSeconds(kind, UnitKind::kLayer, ops, samples, share),
                       static_cast<double>(costs.SavedBytes(kind, UnitKind::kLayer, ops, samples, share))});
  }
  return options;
}

}  // namespace motley::planner
