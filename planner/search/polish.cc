#include "planner/search/polish.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/worst_memory.h"
#include "planner/search/plan_moves.h"

namespace motley::planner {
namespace {

constexpr size_t kConfirmed = 3;          // best estimates of a round that are simulated, at least
constexpr size_t kMostConfirmed = 16;     // of small steps, whose simulation costs little
constexpr size_t kConfirmedTasks = 8000;  // of all simulations of a round together
constexpr size_t kLeaps = 5;              // first moves of two that are followed
constexpr double kWorthIt = ClimbScore::kWorthIt;
constexpr double kEstimatorError = 1.03;  // estimates up to this factor above the best may still be better

constexpr size_t kRepaired = 2;   // of those that lack memory but are fast
constexpr int kRepairSteps = 12;  // as many as a ladder is long

// Every rank of the plan with the number of its unit's ranks and its device; ranks whose device the setting lacks are passed
// over.
template <typename Function>
void ForEachKnownRank(const Setting& setting, Plan* plan, Function function) {
  std::vector<std::pair<std::string_view, int>> devices;
  for (int d = 0; d < setting.num_devices(); ++d) devices.emplace_back(setting.cluster.devices[d].id.value(), d);
  std::sort(devices.begin(), devices.end());
  ForEachUnit(*plan, [&](UnitPlan& unit) {
    for (RankPlan& rank : unit.ranks) {
      const auto at = std::lower_bound(devices.begin(), devices.end(), std::pair<std::string_view, int>(rank.device.value(), 0));
      if (at != devices.end() && at->first == rank.device.value()) function(rank, unit.ranks.size(), at->second);
    }
  });
}

using Score = ClimbScore;

Score ScoreOf(const Setting& setting, const Evaluation& evaluation) {
  const double worst = evaluation.does_not_fit.empty() ? 0 : WorstMemory(setting, evaluation.plan);
  return {worst > 1 ? worst - 1 : 0, evaluation.plan.predicted.step_seconds};
}

struct Candidate {
  double overflow, seconds;
  size_t index;
  bool operator<(const Candidate& o) const {
    return std::tie(overflow, seconds, index) < std::tie(o.overflow, o.seconds, o.index);
  }
};

// Moves worth a simulation: those that fit at least as well, best first; and those that are faster but lack memory.
struct Shortlist {
  std::vector<Candidate> fitting, lacking;
};
Shortlist Estimate(const Setting& setting, const std::vector<Move>& moves, const Score& score, SeenPlans* seen) {
  Shortlist list;
  for (size_t i = 0; i < moves.size(); ++i) {
    if (!setting.MayBe(moves[i].plan)) continue;
    const std::optional<QuickPrice> price = seen->Estimate(setting, moves[i].plan);
    if (!price) continue;  // breaks a rule of its schedule: not a neighbour
    const double overflow = std::max(0.0, price->worst_memory - 1);
    if (overflow > score.overflow) {
      if (price->step_seconds < score.seconds * kWorthIt) list.lacking.push_back({0, price->step_seconds, i});
    } else if (score.overflow > 0 || price->step_seconds <= score.seconds * kEstimatorError) {
      list.fitting.push_back({overflow, price->step_seconds, i});
    }
  }
  std::sort(list.fitting.begin(), list.fitting.end());
  std::sort(list.lacking.begin(), list.lacking.end());
  if (list.lacking.size() > kRepaired) list.lacking.resize(kRepaired);
  return list;
}

class Climber {
 public:
  Climber(const Setting& setting, Evaluation start, SearchBudget* budget, SeenPlans* seen, PricePlan& price)
      : setting_(setting),
        budget_(*budget),
        seen_(*seen),
        price_(price),
        best_(std::move(start)),
        score_(ScoreOf(setting, best_)) {}

  Evaluation Climb() {
    while (in_budget_ && (Step() || Leap())) {
    }
    return std::move(best_);
  }

 private:
  // Neighbours and what the estimator makes of them; none when the budget is spent.
  struct Around {
    std::vector<Move> moves;
    Shortlist list;
  };
  Around LookAround(const Plan& plan) {
    Around around{Neighbours(setting_, plan), {}};
    in_budget_ = budget_.Spend(EstimateNodes(setting_) * static_cast<int64_t>(around.moves.size()));
    if (in_budget_) around.list = Estimate(setting_, around.moves, score_, &seen_);
    return around;
  }

  // What is not better stays as it is.
  bool Accept(absl::StatusOr<Evaluation>&& priced) {
    if (!priced.ok()) return false;
    in_budget_ = budget_.Charge(*priced);
    const Score other = ScoreOf(setting_, *priced);
    if (!other.Better(score_)) return false;
    best_ = *std::move(priced);
    score_ = other;
    return true;
  }

  // The same of a plan that is yet to be simulated, unless some climber has: what was no better costs as much, and no time.
  // `refused`: the evaluation, where there was one.
  bool AcceptPlan(Plan plan, std::optional<Evaluation>* refused) {
    const LayoutDigest digest = DigestOf(plan);
    if (const auto known = seen_.Find(digest); known && !known->score.Better(score_)) {
      in_budget_ = budget_.ChargeTasks(known->tasks);
      return false;
    }
    absl::StatusOr<Evaluation> priced = price_(setting_, std::move(plan));
    if (!priced.ok()) return false;
    seen_.Note(digest, {ScoreOf(setting_, *priced), priced->graph.tasks.size()});
    if (Accept(std::move(priced))) return true;
    *refused = *std::move(priced);
    return false;
  }

  size_t Confirmed() const {
    return std::clamp(kConfirmedTasks / std::max<size_t>(1, best_.graph.tasks.size()), kConfirmed, kMostConfirmed);
  }

  // To the best neighbour that the simulator confirms.
  bool Step() {
    around_ = LookAround(best_.plan);
    refused_.clear();
    const std::vector<Candidate>& fitting = around_.list.fitting;
    for (size_t i = 0; i < fitting.size() && i < Confirmed() && in_budget_; ++i) {
      std::optional<Evaluation> refused;
      if (AcceptPlan(around_.moves[fitting[i].index].plan, &refused)) return true;
      if (i < kLeaps) refused_.push_back(std::move(refused));
    }
    for (const Candidate& candidate : around_.list.lacking) {
      if (!in_budget_) break;
      if (Accept(Repair(setting_, std::move(around_.moves[candidate.index].plan), &budget_, price_))) return true;
    }
    return false;
  }

  // No single move helps: two at once, the first among those that cost least.
  bool Leap() {
    struct Second {
      Candidate candidate;
      Plan plan;
    };
    const std::optional<QuickPrice> here = seen_.Estimate(setting_, best_.plan);
    if (!here) return false;
    std::vector<Second> ends;
    const std::vector<Candidate> first = around_.list.fitting;
    for (size_t i = 0; i < first.size() && i < kLeaps && in_budget_; ++i) {
      const absl::StatusOr<Evaluation> priced = i < refused_.size() && refused_[i]
                                                    ? *std::move(refused_[i])
                                                    : price_(setting_, std::move(around_.moves[first[i].index].plan));
      if (!priced.ok() || !(in_budget_ = budget_.Charge(*priced))) continue;
      Around next = LookAround(priced->plan);
      const std::vector<Candidate>& fitting = next.list.fitting;
      for (size_t j = 0; j < fitting.size() && j < kConfirmed; ++j) {
        if (score_.overflow == 0 && fitting[j].seconds >= here->step_seconds * kWorthIt) break;  // such as the way back
        ends.push_back({{fitting[j].overflow, fitting[j].seconds, ends.size()}, std::move(next.moves[fitting[j].index].plan)});
      }
    }
    std::sort(ends.begin(), ends.end(), [](const Second& a, const Second& b) { return a.candidate < b.candidate; });
    for (size_t i = 0; i < ends.size() && i < Confirmed() && in_budget_; ++i) {
      std::optional<Evaluation> refused;
      if (AcceptPlan(std::move(ends[i].plan), &refused)) return true;
    }
    return false;
  }

  const Setting& setting_;
  SearchBudget& budget_;
  SeenPlans& seen_;
  PricePlan& price_;
  Evaluation best_;
  Score score_;
  Around around_;                                   // best_, where Step found nothing
  std::vector<std::optional<Evaluation>> refused_;  // by Step: the first of around_.list.fitting, a leap's first moves
  bool in_budget_ = true;
};

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

absl::StatusOr<Evaluation> Repair(const Setting& setting, Plan plan, SearchBudget* budget, PricePlan& price) {
  MOTLEY_ASSIGN_OR_RETURN(Evaluation priced, price(setting, std::move(plan)));
  for (int step = 0; step < kRepairSteps && !priced.does_not_fit.empty() && budget->Charge(priced); ++step) {
    bool changed = false;
    ForEachKnownRank(setting, &priced.plan, [&](RankPlan& rank, size_t ranks, int device) {
      if (rank.predicted.peak_bytes <= setting.UsableBytes(device)) return;
      const OpSet more = SteppedRecompute(setting, rank, ranks, 1);
      changed |= more != rank.recompute;
      rank.recompute = more;
    });
    if (!changed) break;
    MOTLEY_ASSIGN_OR_RETURN(priced, price(setting, std::move(priced.plan)));
  }
  return priced;
}

absl::StatusOr<Evaluation> Polish(const Setting& setting, Plan plan, SearchBudget* budget, SeenPlans* seen, PricePlan& price) {
  MOTLEY_ASSIGN_OR_RETURN(Evaluation start, price(setting, std::move(plan)));
  SeenPlans own;
  return Climber(setting, std::move(start), budget, seen != nullptr ? seen : &own, price).Climb();
}

}  // namespace motley::planner
