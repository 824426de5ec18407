// Method: a rank's cost falls out of its parts: the knapsack's list is walked by bisection to the cheapest recomputation under
// which the
//         ledger says that it fits. Parts go one by one to the rank that would then take least (exact for the slowest rank's
//         total, as costs never fall in the parts), then single parts move between kinds while the unit's true seconds fall, in
//         which forward, recomputation and backward each have their own slowest rank.
#include "planner/strategies/baton/baton_unit.h"

#include <algorithm>

#include "common/model/model_slice.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

// Positions of each kind's first rank: `kinds` ascends.
std::vector<size_t> FirstOfEachKind(const std::vector<int>& kinds) {
  std::vector<size_t> firsts;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i == 0 || kinds[i] != kinds[i - 1]) firsts.push_back(i);
  }
  return firsts;
}

}  // namespace

BatonUnitSolver::BatonUnitSolver(const Setting& setting)
    : setting_(setting),
      costs_(setting.costs),
      parts_(NumParts(setting.workload.model)),
      usable_(setting.cluster.kinds.size(), 0) {
  for (int d = 0; d < setting.num_devices(); ++d) usable_[setting.KindOf(d)] = setting.UsableBytes(d);
}

RankDuty BatonUnitSolver::Duty(int kind, int64_t parts, const BatonRole& role) const {
  RankDuty duty;
  duty.kind = kind;
  duty.layers = duty.largest_ministage = role.layers;
  duty.embedding = role.embedding;
  duty.head = role.head;
  duty.schedule = ScheduleFamily::k1F1B;
  duty.zero_stage = role.zero_stage;
  duty.tp_share = static_cast<double>(parts) / static_cast<double>(parts_);
  duty.share = duty.tp_share / static_cast<double>(role.replicas);
  duty.group_size = role.replicas;
  duty.in_flight = role.in_flight;
  duty.num_stages = role.embedding && role.head ? 1 : 2;
  duty.from_previous = role.embedding ? 0 : role.microbatch;
  duty.from_next = role.head ? 0 : role.microbatch;
  duty.samples = setting_.workload.global_batch / role.replicas;
  return duty;
}

const std::vector<RecomputeOption>& BatonUnitSolver::Frontier(int kind, int64_t parts, int64_t microbatch, bool with_reduction) {
  const auto [at, is_new] = frontiers_.try_emplace({kind, parts, microbatch, with_reduction});
  if (is_new) {
    const double share = static_cast<double>(parts) / static_cast<double>(parts_);
    const double samples = static_cast<double>(microbatch);
    at->second = setting_.MayRecomputeByOperator()
                     ? RecomputeFrontier(RecomputeItems(costs_, kind, samples, share, with_reduction))
                     : FrontierOf(setting_.RecomputeWays(), costs_, kind, samples, share);
  }
  return at->second;
}

BatonUnitSolver::RankCost BatonUnitSolver::Compute(int kind, int64_t parts, size_t ranks, const BatonRole& role) {
  RankDuty duty = Duty(kind, parts, role);
  const auto peak = [&](OpSet ops) {
    duty.recompute = ops;
    return MemoryOf(costs_, duty, role.in_flight + 1, role.microbatch, 0).total();
  };
  const std::vector<RecomputeOption>& frontier = Frontier(kind, parts, role.microbatch, ranks == 1);
  const int64_t usable = usable_[kind];
  const auto option =
      std::partition_point(frontier.begin(), frontier.end(), [&](const RecomputeOption& o) { return peak(o.ops) > usable; });
  RankCost cost;
  if (option == frontier.end()) {
    cost.missing_bytes = peak(frontier.back().ops) - usable;
    return cost;
  }
  cost.fits = true;
  cost.ops = option->ops;
  const double samples = static_cast<double>(role.microbatch), layers = static_cast<double>(role.layers);
  const auto add = [&](UnitKind unit, double times) {
    cost.forward += times * costs_.ForwardSeconds(kind, unit, samples, duty.tp_share);
    cost.backward += times * costs_.BackwardSeconds(kind, unit, samples, duty.tp_share);
  };
  add(UnitKind::kLayer, layers);
  if (role.embedding) add(UnitKind::kEmbedding, 1);
  if (role.head) add(UnitKind::kHead, 1);
  cost.recompute = layers * option->seconds;
  return cost;
}

const BatonUnitSolver::RankCost& BatonUnitSolver::CostOf(int kind, int64_t parts, size_t ranks, const BatonRole& role) {
  const auto [at, is_new] = ranks_.try_emplace({kind, parts, ranks == 1, role});
  if (is_new) at->second = Compute(kind, parts, ranks, role);
  return at->second;
}

double BatonUnitSolver::UnitSeconds(const std::vector<int>& kinds, const std::vector<int64_t>& parts, const BatonRole& role) {
  double forward = 0, recompute = 0, backward = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const RankCost& cost = CostOf(kinds[i], parts[i], kinds.size(), role);
    if (!cost.fits) return kInfinity;
    forward = std::max(forward, cost.forward);
    recompute = std::max(recompute, cost.recompute);
    backward = std::max(backward, cost.backward);
  }
  return forward + recompute + backward;
}

// Empty: some part fits nowhere.
std::vector<int64_t> BatonUnitSolver::SplitParts(const std::vector<int>& kinds, const BatonRole& role) {
  const int64_t ranks = static_cast<int64_t>(kinds.size());
  std::vector<int64_t> parts(kinds.size(), 1);
  if (kinds.front() == kinds.back()) {  // alike: even parts, the first take the rest
    for (int64_t i = 0; i < ranks; ++i) parts[i] = parts_ / ranks + (i < parts_ % ranks ? 1 : 0);
    return CostOf(kinds.front(), parts.front(), kinds.size(), role).fits ? parts : std::vector<int64_t>();
  }
  const auto total = [&](size_t i, int64_t own) {
    const RankCost& cost = CostOf(kinds[i], own, kinds.size(), role);
    return cost.fits ? cost.forward + cost.recompute + cost.backward : kInfinity;
  };
  std::vector<double> next(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (total(i, 1) == kInfinity) return {};
    next[i] = total(i, 2);
  }
  for (int64_t rest = parts_ - ranks; rest > 0; --rest) {
    const size_t i = static_cast<size_t>(std::min_element(next.begin(), next.end()) - next.begin());
    if (next[i] == kInfinity) return {};
    next[i] = ++parts[i] < parts_ ? total(i, parts[i] + 1) : kInfinity;
  }
  return parts;
}

// Moves one part from the fullest rank of a kind to the emptiest of another where that helps.
bool BatonUnitSolver::Improve(const std::vector<int>& kinds, const BatonRole& role, std::vector<int64_t>* parts) {
  const double before = UnitSeconds(kinds, *parts, role);
  const std::vector<size_t> firsts = FirstOfEachKind(kinds);
  double best = before;
  std::pair<size_t, size_t> best_move;
  for (const size_t from : firsts) {
    for (const size_t to : firsts) {
      if (from == to) continue;
      const auto of_kind = [&](size_t first, bool fullest) {
        size_t found = first;
        for (size_t i = first; i < kinds.size() && kinds[i] == kinds[first]; ++i) {
          if (fullest ? (*parts)[i] > (*parts)[found] : (*parts)[i] < (*parts)[found]) found = i;
        }
        return found;
      };
      const size_t giver = of_kind(from, true), taker = of_kind(to, false);
      if ((*parts)[giver] < 2) continue;
      --(*parts)[giver], ++(*parts)[taker];
      const double seconds = UnitSeconds(kinds, *parts, role);
      ++(*parts)[giver], --(*parts)[taker];
      if (seconds >= best) continue;
      best = seconds;
      best_move = {giver, taker};
    }
  }
  if (best >= before) return false;
  --(*parts)[best_move.first];
  ++(*parts)[best_move.second];
  return true;
}

BatonUnit BatonUnitSolver::SolveNew(const std::vector<int>& kinds, const BatonRole& role) {
  BatonUnit unit;
  if (static_cast<int64_t>(kinds.size()) > parts_) return unit;
  std::vector<int64_t> parts = SplitParts(kinds, role);
  if (parts.empty()) {
    const int64_t even = std::max<int64_t>(1, parts_ / static_cast<int64_t>(kinds.size()));
    for (const size_t i : FirstOfEachKind(kinds)) {
      const RankCost& cost = CostOf(kinds[i], even, kinds.size(), role);
      if (cost.missing_bytes <= unit.missing_bytes) continue;
      unit.missing_bytes = cost.missing_bytes;
      unit.missing_rank = i;
    }
    return unit;
  }
  if (kinds.front() != kinds.back()) {
    while (Improve(kinds, role, &parts)) {
    }
  }
  unit.fits = true;
  unit.seconds = UnitSeconds(kinds, parts, role);
  for (size_t i = 0; i < kinds.size(); ++i) {
    unit.ranks.push_back({parts[i], CostOf(kinds[i], parts[i], kinds.size(), role).ops});
  }
  return unit;
}

int BatonUnitSolver::UnitClass(std::vector<int> kinds) {
  const auto [at, is_new] = classes_.try_emplace(std::move(kinds), static_cast<int>(classes_.size()));
  if (is_new) kinds_.push_back(at->first);
  return at->second;
}

const BatonUnit& BatonUnitSolver::Solve(int unit_class, const BatonRole& role) {
  const auto [at, is_new] = units_.try_emplace({unit_class, role});
  if (is_new) at->second = SolveNew(kinds_[unit_class], role);
  return at->second;
}

double BatonUnitSolver::LeastSeconds(int unit_class, const BatonRole& role) const {
  // Cut anywhere: a rank that computes all alone takes t, so the unit takes at least the harmonic sum of those.
  double speed = 0;
  const double samples = static_cast<double>(role.microbatch), layers = static_cast<double>(role.layers);
  for (const int kind : kinds_[unit_class]) {
    const auto seconds = [&](UnitKind unit) {
      return costs_.ForwardSeconds(kind, unit, samples) + costs_.BackwardSeconds(kind, unit, samples);
    };
    const double all = layers * seconds(UnitKind::kLayer) + (role.embedding ? seconds(UnitKind::kEmbedding) : 0) +
                       (role.head ? seconds(UnitKind::kHead) : 0);
    speed += 1 / all;
  }
  return 1 / speed;
}

}  // namespace motley::planner
