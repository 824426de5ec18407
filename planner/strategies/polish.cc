#include "planner/strategies/polish.h"

#include <algorithm>
#include <tuple>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/status_macros.h"
#include "planner/offline.h"
#include "planner/strategies/plan_moves.h"

namespace motley::planner {
namespace {

constexpr size_t kConfirmed = 3;           // best estimates of a round that are simulated
constexpr double kWorthIt = 0.999;         // a gain below a thousandth is noise of the model
constexpr double kEstimatorError = 1.03;   // estimates up to this factor above the best may still be better

constexpr size_t kRepaired = 2;            // of those that lack memory but are fast
constexpr int kRepairSteps = 12;           // as many as a ladder is long

// Every rank of the plan with its device; ranks whose device the setting lacks are passed over.
template <typename Function>
void ForEachRank(const Setting& setting, Plan* plan, Function function) {
  std::vector<std::pair<std::string_view, int>> devices;
  for (int d = 0; d < setting.num_devices(); ++d) devices.emplace_back(setting.cluster.devices[static_cast<size_t>(d)].id.value(), d);
  std::sort(devices.begin(), devices.end());
  for (PipelinePlan& pipeline : plan->pipelines) {
    for (StagePlan& stage : pipeline.stages) {
      for (UnitPlan& unit : stage.units) {
        for (RankPlan& rank : unit.ranks) {
          const auto at = std::lower_bound(devices.begin(), devices.end(), std::pair<std::string_view, int>(rank.device.value(), 0));
          if (at != devices.end() && at->first == rank.device.value()) function(rank, at->second);
        }
      }
    }
  }
}

// Fitting comes first, then speed.
struct Score {
  double overflow = 0, seconds = 0;
  bool Better(const Score& other) const {
    if (overflow > 0 || other.overflow > 0) return overflow < other.overflow * kWorthIt;
    return seconds < other.seconds * kWorthIt;
  }
};

Score ScoreOf(const Setting& setting, const Evaluation& evaluation) {
  const double worst = evaluation.does_not_fit.empty() ? 0 : WorstMemory(setting, evaluation.plan);
  return {worst > 1 ? worst - 1 : 0, evaluation.plan.predicted.step_seconds};
}

// Ranks that lack memory recompute one operator more, until all fit or none can.
absl::StatusOr<Evaluation> Repair(const Setting& setting, Plan plan, SearchBudget* budget) {
  MOTLEY_ASSIGN_OR_RETURN(Evaluation priced, Evaluate(setting, std::move(plan)));
  for (int step = 0; step < kRepairSteps && !priced.does_not_fit.empty() && budget->Charge(priced); ++step) {
    bool changed = false;
    ForEachRank(setting, &priced.plan, [&](RankPlan& rank, int device) {
      if (rank.predicted.peak_bytes <= setting.UsableBytes(device)) return;
      std::string more = SteppedRecompute(setting, rank, 1);
      changed |= more != rank.recompute;
      rank.recompute = std::move(more);
    });
    if (!changed) break;
    MOTLEY_ASSIGN_OR_RETURN(priced, Evaluate(setting, std::move(priced.plan)));
  }
  return priced;
}

struct Candidate {
  double overflow, seconds;
  size_t index;
  bool operator<(const Candidate& o) const { return std::tie(overflow, seconds, index) < std::tie(o.overflow, o.seconds, o.index); }
};

// Moves worth a simulation: those that fit at least as well, best first; and those that are faster but lack memory.
struct Shortlist {
  std::vector<Candidate> fitting, lacking;
};
Shortlist Estimate(const Setting& setting, const std::vector<Move>& moves, const Score& score) {
  Shortlist list;
  for (size_t i = 0; i < moves.size(); ++i) {
    const auto price = EstimatePlan(setting, moves[i].plan);
    if (!price.ok()) continue;  // breaks a rule of its schedule: not a neighbour
    const double overflow = std::max(0.0, price->worst_memory - 1);
    if (overflow > score.overflow) {
      if (price->step_seconds < score.seconds * kWorthIt) list.lacking.push_back({0, price->step_seconds, i});
    } else if (score.overflow > 0 || price->step_seconds <= score.seconds * kEstimatorError) {
      list.fitting.push_back({overflow, price->step_seconds, i});
    }
  }
  std::sort(list.fitting.begin(), list.fitting.end());
  std::sort(list.lacking.begin(), list.lacking.end());
  if (list.fitting.size() > kConfirmed) list.fitting.resize(kConfirmed);
  if (list.lacking.size() > kRepaired) list.lacking.resize(kRepaired);
  return list;
}

}  // namespace

bool SearchBudget::Spend(int64_t count) {
  if (nodes < count) {
    nodes = 0;
    return false;
  }
  if (deadline != absl::InfiniteFuture() && absl::Now() >= deadline) {
    stopped_by_clock = true;
    return false;
  }
  nodes -= count;
  return true;
}

SearchBudget BudgetOf(const PlanRequest& request) {
  SearchBudget budget;
  budget.nodes = request.budget_nodes;
  if (request.deadline) budget.deadline = absl::Now() + *request.deadline;
  return budget;
}

absl::StatusOr<Evaluation> Polish(const Setting& setting, Plan plan, SearchBudget* budget) {
  MOTLEY_ASSIGN_OR_RETURN(Evaluation best, Evaluate(setting, std::move(plan)));
  Score score = ScoreOf(setting, best);
  bool improved = true, in_budget = true;
  while (improved && in_budget) {
    improved = false;
    std::vector<Move> moves = Neighbours(setting, best.plan);
    if (!budget->Spend(kEstimateNodes * static_cast<int64_t>(moves.size()))) break;
    const Shortlist list = Estimate(setting, moves, score);
    const auto accept = [&](absl::StatusOr<Evaluation> priced) {
      if (!priced.ok()) return false;
      in_budget = budget->Charge(*priced);
      const Score other = ScoreOf(setting, *priced);
      if (!other.Better(score)) return false;
      best = *std::move(priced);
      score = other;
      return true;
    };
    for (const Candidate& candidate : list.fitting) {
      if (improved || !in_budget) break;
      improved = accept(Evaluate(setting, std::move(moves[candidate.index].plan)));
    }
    for (const Candidate& candidate : list.lacking) {
      if (improved || !in_budget) break;
      improved = accept(Repair(setting, std::move(moves[candidate.index].plan), budget));
    }
  }
  return best;
}

}  // namespace motley::planner
