#include "planner/strategies/auto/auto_turns.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/in_parallel.h"
#include "planner/groups/alike_devices.h"
#include "planner/groups/megatron_layout.h"
#include "planner/pricing/evaluate.h"
#include "planner/search/plan_moves.h"
#include "planner/search/regroup.h"
#include "planner/search/tied_ends.h"
#include "planner/search/turn_stages.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr size_t kVaried = 24;        // groupings with a degree whose microbatches, order and schedule are varied
constexpr size_t kClimbed = 6;        // of the varied ones, whose groups are changed too
constexpr double kBegunInFlight = 2;  // times the schedule's own number, before that is varied
constexpr size_t kEndsTried = 4;      // ways to have both ends on one node, of a grouping in the first round
constexpr double kWorthIt = 0.999;
constexpr int64_t kMostRounds = 256;
constexpr int64_t kVariations = 64;   // of one candidate, about
constexpr size_t kAllOrders = 3;      // groups
constexpr size_t kDegreesVaried = 8;  // groups whose tensor-parallel degree is varied on its own

// A plan made and estimated.
int64_t TurnNodes(const Setting& setting) { return 40 + 2 * setting.num_devices(); }

// Pieces that `cost` nodes each can be paid for, before any is begun: the same whatever the number of threads.
size_t Affordable(size_t pieces, int64_t cost, SearchBudget* budget) {
  pieces = std::min(pieces, static_cast<size_t>(budget->nodes / cost));
  return budget->Spend(cost * static_cast<int64_t>(pieces)) ? pieces : 0;
}

// Choices that were tried. The best so far is no worse than any of them, so none needs to be made again: not the same choice, and
// none that asks for the same number in flight by another factor.
class Tried {
 public:
  explicit Tried(const TurnChoice& first) { IsNew(first); }
  bool IsNew(const TurnChoice& choice) {
    return seen_
        .emplace(choice.groups, choice.tp, choice.rounds, InFlightOf(choice), choice.schedule, choice.zero_stage,
                 choice.offload.optimizer)
        .second;
  }

 private:
  std::set<std::tuple<std::vector<std::vector<int>>, std::vector<int>, int64_t, std::vector<int64_t>, ScheduleFamily, int, bool>>
      seen_;
};

class TurnSearch {
 public:
  TurnSearch(const Setting& setting, SearchBudget* budget)
      : setting_(setting), budget_(*budget), may_offload_(setting.MayOffload().optimizer), first_alike_(FirstAlike(setting)) {}

  // What every grouping comes to at once, and the best ones varied: the seconds of the best.
  double Look(const std::vector<Grouping>& groupings, size_t varied) {
    std::vector<Candidate> first = FirstRound(groupings);
    double best = first.empty() ? kInfinity : first[0].found.seconds;
    varied = Affordable(std::min(first.size(), varied), kVariations * TurnNodes(setting_), &budget_);
    InParallel(varied, [&](size_t i) { first[i] = Vary(std::move(first[i])); });
    for (size_t i = 0; i < varied; ++i) best = std::min(best, first[i].found.seconds);
    return best;
  }

  std::vector<TurnPlan> Run(const std::vector<Grouping>& groupings, size_t count) {
    const int64_t for_climbing = budget_.nodes / 2;
    budget_.nodes -= for_climbing;
    const int64_t for_variations = std::min(budget_.nodes / 2, static_cast<int64_t>(kVaried) * kVariations * TurnNodes(setting_));
    budget_.nodes -= for_variations;
    std::vector<Candidate> first = FirstRound(groupings);
    budget_.nodes += for_variations;
    const size_t varied = Affordable(std::min(first.size(), kVaried), kVariations * TurnNodes(setting_), &budget_);
    InParallel(varied, [&](size_t i) { first[i] = Vary(std::move(first[i])); });
    std::stable_sort(first.begin(), first.end());
    KeepUnlike(&first);
    budget_.nodes += for_climbing;
    // Beside those that they came from: the estimator, by which they climb, is not the last word.
    for (Candidate& climbed : ClimbAll(first)) first.push_back(std::move(climbed));
    std::stable_sort(first.begin(), first.end());
    std::vector<TurnPlan> plans;
    std::set<std::string> seen;  // different ways may lead to one plan
    for (Candidate& candidate : first) {
      if (plans.size() < count && seen.insert(ToJson(candidate.found.plan)).second) plans.push_back(std::move(candidate.found));
    }
    return plans;
  }

 private:
  struct Candidate {
    TurnChoice choice;
    std::string from;
    TurnPlan found;
    bool operator<(const Candidate& other) const { return found.seconds < other.found.seconds; }
  };

  // One of those that the variations made the same, but for the names of devices.
  void KeepUnlike(std::vector<Candidate>* sorted) const {
    std::set<std::tuple<double, std::vector<std::vector<int>>, std::vector<int>>> seen;
    std::erase_if(*sorted, [&](const Candidate& c) {
      return !seen.insert({c.found.seconds, LookOf(first_alike_, c.choice.groups), c.choice.tp}).second;
    });
  }

  // Every grouping and degree at the best of some numbers of microbatches, best first.
  std::vector<Candidate> FirstRound(const std::vector<Grouping>& groupings) {
    struct Piece {
      TurnChoice choice;
      size_t division = 0;  // groups and degree as they came, of which only the best way to begin goes on
      const std::string* from;
      std::vector<int64_t> rounds;
      std::optional<Candidate> best;
    };
    std::vector<Piece> pieces, with_ends_together;  // these as far as the budget goes
    size_t divisions = 0;
    std::set<std::pair<std::vector<std::vector<int>>, std::vector<int>>> seen;
    int64_t most = 1;
    for (const Grouping& grouping : groupings) {
      for (const int tp : TensorParallelDegrees(setting_.workload.model, setting_.request.max_tp)) {
        if (!Meaningful(grouping.groups, tp)) continue;
        std::vector<Piece>* into = &pieces;
        for (TurnChoice& choice : Begun(grouping.groups, tp)) {
          if (!seen.insert({LookOf(first_alike_, choice.groups), choice.tp}).second) continue;
          std::vector<int64_t> rounds = EveryOther(Rounds(choice.groups, tp));
          most = std::max(most, static_cast<int64_t>(rounds.size()));
          into->push_back({std::move(choice), divisions, &grouping.from, std::move(rounds), std::nullopt});
          into = &with_ends_together;
        }
        ++divisions;
      }
    }
    std::move(with_ends_together.begin(), with_ends_together.end(), std::back_inserter(pieces));
    pieces.resize(Affordable(pieces.size(), most * TurnNodes(setting_), &budget_));
    InParallel(pieces.size(), [&](size_t i) {
      for (const int64_t rounds : pieces[i].rounds) {
        TurnChoice choice = pieces[i].choice;
        choice.rounds = rounds;
        auto found = Try(choice, *pieces[i].from);
        if (!found && may_offload_) {
          choice.offload.optimizer = true;
          found = Try(choice, *pieces[i].from);
        }
        if (found && (!pieces[i].best || *found < *pieces[i].best)) pieces[i].best = std::move(found);
      }
    });
    std::vector<std::optional<Candidate>> best(divisions);
    for (Piece& piece : pieces) {
      std::optional<Candidate>& of_division = best[piece.division];
      if (piece.best && (!of_division || *piece.best < *of_division)) of_division = std::move(piece.best);
    }
    std::vector<Candidate> found;
    for (std::optional<Candidate>& of_division : best) {
      if (of_division) found.push_back(*std::move(of_division));
    }
    std::stable_sort(found.begin(), found.end());
    return found;
  }

  // The groups as they come; and some ways to have a tied model's ends on one node, without which most of its divisions look far
  // slower than they can be.
  std::vector<TurnChoice> Begun(const std::vector<std::vector<int>>& groups, int tp) const {
    std::vector<TurnChoice> begun = {{groups, std::vector<int>(groups.size(), tp)}};
    begun[0].in_flight_factor = kBegunInFlight;
    if (setting_.request.zero_stage) begun[0].zero_stage = *setting_.request.zero_stage;
    std::vector<TurnChoice> together = WithEndsTogether(setting_, begun[0]);
    for (size_t i = 0; i < std::min(together.size(), kEndsTried); ++i) begun.push_back(std::move(together[i]));
    for (TurnChoice& choice : begun) {
      for (size_t g = 0; g < choice.groups.size(); ++g) {
        while (static_cast<size_t>(choice.tp[g]) > choice.groups[g].size()) choice.tp[g] /= 2;
      }
    }
    return begun;
  }

  size_t NodeSize(int device) const { return setting_.cluster.nodes[setting_.cluster.devices[device].node].devices.size(); }

  // Some group has `tp` devices in one node.
  bool Meaningful(const std::vector<std::vector<int>>& groups, int tp) const {
    return std::any_of(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
      return group.size() >= static_cast<size_t>(tp) && NodeSize(group[0]) >= static_cast<size_t>(tp);
    });
  }

  // Powers of two between half the number of stages and what gives the units of the largest group a sample each; and that.
  std::vector<int64_t> Rounds(const std::vector<std::vector<int>>& groups, int tp) const {
    size_t units = 1;
    for (const std::vector<int>& group : groups) units = std::max(units, group.size() / static_cast<size_t>(tp));
    const int64_t most = std::max<int64_t>(1, setting_.workload.global_batch / static_cast<int64_t>(units));
    std::vector<int64_t> rounds;
    for (int64_t r = 1; r <= most && r <= kMostRounds; r *= 2) {
      if (2 * r >= static_cast<int64_t>(groups.size())) rounds.push_back(r);
    }
    if (most <= kMostRounds && (rounds.empty() || rounds.back() != most)) rounds.push_back(most);
    return rounds.empty() ? std::vector<int64_t>{kMostRounds} : rounds;
  }

  static std::vector<int64_t> EveryOther(const std::vector<int64_t>& all) {
    std::vector<int64_t> some;
    for (size_t i = (all.size() + 1) % 2; i < all.size(); i += 2) some.push_back(all[i]);
    return some;
  }

  std::optional<Candidate> Try(TurnChoice choice, const std::string& from) const {
    auto plan = PlanTurns(setting_, choice);
    if (!plan.ok()) return std::nullopt;
    const auto price = EstimatePlan(setting_, *plan);
    if (!price.ok() || price->worst_memory > 1) return std::nullopt;
    std::string origin =
        absl::StrCat(std::string(ScheduleName(choice.schedule)), " over groups ", from, ", ", choice.rounds, " microbatches");
    return Candidate{std::move(choice), from, {std::move(origin), *std::move(plan), price->step_seconds}};
  }

  // One thing after the other, each from the best so far; and once more, as one may have opened another.
  Candidate Vary(Candidate best) const {
    const double before = best.found.seconds;
    Tried tried(best.choice);
    best = VaryOnce(std::move(best), &tried);
    return best.found.seconds < before ? VaryOnce(std::move(best), &tried) : best;
  }

  Candidate VaryOnce(Candidate best, Tried* tried) const {
    const auto consider = [&](TurnChoice choice) {
      if (!tried->IsNew(choice)) return;
      auto found = Try(std::move(choice), best.from);
      if (found && *found < best) best = *std::move(found);
    };
    for (const int64_t rounds : Rounds(best.choice.groups, best.choice.tp[0])) {
      TurnChoice choice = best.choice;
      choice.rounds = rounds;
      for (const double factor : {1.0, 2.0, 4.0}) {
        choice.in_flight_factor = factor;
        consider(choice);
      }
    }
    TurnChoice choice = best.choice;
    choice.schedule = ScheduleFamily::kZeroBubble;
    consider(choice);
    if (setting_.request.pins.empty()) {
      for (const std::vector<size_t>& order : Orders(best.choice.groups.size())) consider(Reordered(best.choice, order));
    }
    for (TurnChoice& together : WithEndsTogether(setting_, best.choice)) consider(std::move(together));
    for (size_t g = 0; g < std::min(best.choice.groups.size(), kDegreesVaried); ++g) {
      for (const int tp : TensorParallelDegrees(setting_.workload.model, setting_.request.max_tp)) {
        choice = best.choice;
        if (choice.tp[g] == tp || choice.groups[g].size() < static_cast<size_t>(tp)) continue;
        choice.tp[g] = tp;
        consider(choice);
      }
    }
    for (const int zero : {1, 2}) {
      choice = best.choice;
      choice.zero_stage = zero;
      if (!setting_.request.zero_stage) consider(choice);
    }
    for (const double factor : {1.5, 3.0, 8.0}) {
      choice = best.choice;
      choice.in_flight_factor = factor;
      consider(choice);
    }
    for (const int64_t rounds : {best.choice.rounds * 3 / 4, best.choice.rounds * 3 / 2}) {
      choice = best.choice;
      choice.rounds = std::max<int64_t>(1, rounds);
      consider(choice);
    }
    choice = best.choice;
    choice.offload.optimizer = !choice.offload.optimizer;
    if (may_offload_) consider(choice);
    return best;
  }

  // The best ones with groups of their own change their groups too, for as long as that helps: what came of those that it helped.
  std::vector<Candidate> ClimbAll(const std::vector<Candidate>& found) {
    std::vector<Candidate> climbed;
    for (const Candidate& candidate : found) {
      const auto same = [&](const Candidate& other) {
        return LookOf(first_alike_, other.choice.groups) == LookOf(first_alike_, candidate.choice.groups);
      };
      if (climbed.size() < kClimbed && std::none_of(climbed.begin(), climbed.end(), same)) climbed.push_back(candidate);
    }
    if (climbed.empty()) return climbed;
    const std::vector<Candidate> starts = climbed;
    std::vector<SearchBudget> budgets(climbed.size(), budget_);
    const int64_t each = kClimbersAtOnce * budget_.nodes / static_cast<int64_t>(climbed.size());
    InParallel(climbed.size(), [&](size_t i) {
      budgets[i].nodes = each;
      Climb(&budgets[i], &climbed[i]);
    });
    int64_t spent = 0;
    for (const SearchBudget& budget : budgets) {
      spent += each - budget.nodes;
      budget_.stopped_by_clock |= budget.stopped_by_clock;
    }
    budget_.nodes -= spent / kClimbersAtOnce;
    std::vector<Candidate> helped;
    for (size_t i = 0; i < climbed.size(); ++i) {
      const auto same = [&](const Candidate& other) { return other.found.seconds == climbed[i].found.seconds; };
      if (climbed[i] < starts[i] && std::none_of(helped.begin(), helped.end(), same)) helped.push_back(std::move(climbed[i]));
    }
    return helped;
  }

  void Climb(SearchBudget* budget, Candidate* best) const {
    Tried tried(best->choice);
    for (bool better = true; better;) {
      better = false;
      const std::vector<TurnChoice> choices = Regrouped(setting_, best->choice);
      if (!budget->Spend(TurnNodes(setting_) * static_cast<int64_t>(choices.size()))) return;
      Candidate next = *best;
      for (const TurnChoice& choice : choices) {
        if (!tried.IsNew(choice)) continue;
        auto found = Try(choice, best->from);
        if (found && *found < next) next = *std::move(found);
      }
      if (next.found.seconds < kWorthIt * best->found.seconds) {
        *best = std::move(next);
        better = true;
      }
    }
  }

  static TurnChoice Reordered(const TurnChoice& choice, const std::vector<size_t>& order) {
    TurnChoice other = choice;
    for (size_t i = 0; i < order.size(); ++i) {
      other.groups[i] = choice.groups[order[i]];
      other.tp[i] = choice.tp[order[i]];
    }
    return other;
  }

  // All orders of a few groups; of more the reversed one, climbing tries neighbours.
  static std::vector<std::vector<size_t>> Orders(size_t count) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::vector<std::vector<size_t>> orders;
    if (count > kAllOrders) {
      std::reverse(order.begin(), order.end());
      return {order};
    }
    while (std::next_permutation(order.begin(), order.end())) orders.push_back(order);
    return orders;
  }

  const Setting& setting_;
  SearchBudget& budget_;
  const bool may_offload_;  // the optimizer
  const std::vector<int> first_alike_;
};

}  // namespace

double LookAtTurns(const Setting& setting, const std::vector<Grouping>& groupings, size_t varied) {
  SearchBudget budget = BudgetOf(setting.request);
  return TurnSearch(setting, &budget).Look(groupings, varied);
}

std::vector<TurnPlan> FindTurnPlans(const Setting& setting, const std::vector<Grouping>& groupings, size_t count,
                                    SearchBudget* budget) {
  return TurnSearch(setting, budget).Run(groupings, count);
}

}  // namespace motley::planner
