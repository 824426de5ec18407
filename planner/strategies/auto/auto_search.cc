#include "planner/strategies/auto/auto_search.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/in_parallel.h"
#include "common/base/status_macros.h"
#include "planner/groups/alike_devices.h"
#include "planner/groups/grouping_seconds.h"
#include "planner/groups/groupings.h"
#include "planner/groups/left_out.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/search/polish.h"
#include "planner/setting/request_check.h"
#include "planner/strategies/auto/auto_finalists.h"
#include "planner/strategies/auto/auto_parts.h"
#include "planner/strategies/auto/auto_stages.h"
#include "planner/strategies/auto/auto_turns.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/frugal_plan.h"
#include "planner/util/infinity.h"
#include "planner/util/lack_of_memory.h"

namespace motley::planner {
namespace {

constexpr size_t kClimbers = 6;           // plans that are polished
constexpr double kFarStart = 1.5;         // of the best: what is slower is no start for being of another kind
constexpr size_t kStagesOffered = 8;      // pipelines over groups that are simulated
constexpr size_t kTurnsOffered = 12;      // of those that run forward and backward in turn
constexpr size_t kGroupingsTurned = 128;  // by the rough bound; tried as such pipelines
constexpr size_t kGroupingsSplit = 8;     // by the rough bound; their stages are split exactly
constexpr size_t kGroupingsVaried = 3;    // whose ministages, sharding and order are varied

// A part of a cluster is left where it does not come so near a known plan: by the rough guess, by a quick look at the best few
// groupings, and by the plans that would climb.
constexpr double kRoughlyNear = 1.25, kQuicklyNear = 1.2, kNear = 1.15;
constexpr size_t kGroupingsLookedAt = 16, kGroupingsLookedAtVaried = 3;

constexpr int64_t kPartForPrices = 4;  // of the nodes that are left for climbing, for pricing what it begins with

struct Candidate {
  std::string origin;  // "zorse", "groups by node"
  Plan plan;
  double seconds = 0;     // Evaluate's
  double price = 0;       // Price's; 0: not known
  bool finalist = false;  // a strategy's own plan, or climbed: priced before the choice in any case
  absl::Status fits;      // by its price
};

class AutoSearch {
 public:
  AutoSearch(const Setting& setting, PriceBook* prices, SpentNodes* spent)
      : setting_(setting), prices_(*prices), spent_(*spent), budget_(BudgetOf(setting.request)) {}

  absl::StatusOr<FoundPlan> Run() {
    AskStrategies();
    const std::vector<Grouping> groupings = RoughlyBest(kGroupingsTurned);
    absl::StatusOr<FoundPlan> best = Finish(groupings, TryTurns(groupings), kInfinity);
    if (best.ok()) return best;
    NoteMiss(best.status());
    if (TakeFrugal()) {
      absl::StatusOr<FoundPlan> frugal = Climb(kInfinity);
      if (frugal.ok()) return frugal;  // some fit that cannot be scheduled
    }
    return why_not_;
  }

  absl::StatusOr<FoundPlan> RunPart(double known) {
    const std::vector<Grouping> groupings = RoughlyBest(kGroupingsTurned, kRoughlyNear * known, true);
    if (groupings.empty()) return NothingNear();
    const auto few = static_cast<std::ptrdiff_t>(std::min(kGroupingsLookedAt, groupings.size()));
    if (LookAtTurns(setting_, {groupings.begin(), groupings.begin() + few}, kGroupingsLookedAtVaried) > kQuicklyNear * known) {
      return NothingNear();
    }
    const int64_t kept = TryTurns(groupings);
    const bool comes_near = std::any_of(candidates_.begin(), candidates_.end(),
                                        [&](const Candidate& candidate) { return candidate.seconds <= kNear * known; });
    if (!comes_near) return NothingNear();
    return Finish(groupings, kept, known);
  }

 private:
  static absl::Status NothingNear() { return absl::ResourceExhaustedError("nothing here comes near a plan that is known"); }

  // Behind the strategies and the pipelines in turn; `kept` of the budget for it.
  absl::StatusOr<FoundPlan> Finish(const std::vector<Grouping>& groupings, int64_t kept, double known) {
    const int64_t for_splits = kept / 5;
    budget_.nodes += for_splits;
    const int64_t before = budget_.nodes;
    TryGroupings(groupings);
    spent_.layered += before - budget_.nodes;
    budget_.nodes += kept - for_splits;
    if (candidates_.empty()) {
      return why_not_.ok() ? absl::ResourceExhaustedError("no strategy found a plan that fits") : why_not_;
    }
    return Climb(known);
  }

  static bool Faster(const Candidate& a, const Candidate& b) {
    return std::tie(a.seconds, a.origin) < std::tie(b.seconds, b.origin);
  }

  static double BestKnown(const Candidate& candidate) { return candidate.price > 0 ? candidate.price : candidate.seconds; }
  // By price, where there is one.
  static bool Cheaper(const Candidate& a, const Candidate& b) {
    const double a_seconds = BestKnown(a), b_seconds = BestKnown(b);
    return std::tie(a_seconds, a.origin) < std::tie(b_seconds, b.origin);
  }

  // What became of a plan.
  struct Offered {
    absl::Status why_not;
    std::optional<Candidate> candidate;
  };

  // Simulated; a candidate when it fits and follows the request.
  Offered Offer(std::string origin, Plan plan) const {
    if (absl::Status follows = FollowsRequest(setting_, plan, true); !follows.ok()) return {std::move(follows), std::nullopt};
    auto priced = Evaluate(setting_, std::move(plan));
    if (!priced.ok()) return {};
    if (!priced->does_not_fit.empty()) return {LackOfMemory(priced->lacking_bytes, priced->does_not_fit[0]), std::nullopt};
    const double seconds = priced->plan.predicted.step_seconds;
    return {absl::OkStatus(), Candidate{std::move(origin), std::move(priced->plan), seconds, 0, false}};
  }

  // `offer(i)` for all i on several threads; taken together in order, so that the outcome is the same on any number of them.
  template <typename Function>
  void OfferAll(size_t count, Function offer) {
    std::vector<Offered> offered(count);
    InParallel(count, [&](size_t i) { offered[count - 1 - i] = offer(count - 1 - i); });
    for (Offered& one : offered) {
      NoteMiss(one.why_not);
      if (one.candidate) candidates_.push_back(*std::move(one.candidate));
    }
  }

  void NoteMiss(const absl::Status& why_not) {
    if (!why_not.ok() && (why_not_.ok() || IsNearerMiss(why_not, why_not_))) why_not_ = why_not;
  }

  // Where nothing else fits: what `motley estimate` asks, so that the two agree. Else it says how much is lacking.
  bool TakeFrugal() {
    FrugalAnswer frugal = FindFrugal(setting_);
    if (!frugal.fits.ok()) {
      NoteMiss(frugal.fits);
      return false;
    }
    Offered offered = Offer("frugal", std::move(frugal.plan));
    if (!offered.candidate) {
      why_not_.Update(offered.why_not);
      return false;
    }
    offered.candidate->finalist = true;
    candidates_.clear();
    candidates_.push_back(*std::move(offered.candidate));
    return true;
  }

  // Those that search longest stand at the catalog's end and begin first. With a deadline the quick ones do, and what has not
  // begun by then is not asked.
  void AskStrategies() {
    std::vector<CatalogEntry> strategies = Catalog();
    std::erase_if(strategies, [](const CatalogEntry& entry) { return entry.name == "auto"; });
    const bool timed = setting_.request.deadline.has_value();
    if (timed) std::reverse(strategies.begin(), strategies.end());
    std::atomic<bool> late = false;
    OfferAll(strategies.size(), [&](size_t i) -> Offered {
      if (timed && absl::Now() >= budget_.deadline) {
        late = true;
        return {};
      }
      const std::string name(strategies[i].name);
      auto plan = strategies[i].plan(setting_);
      if (!plan.ok()) return {plan.status(), std::nullopt};
      // Most strategies simulate their answer and say what came out.
      if (const double seconds = plan->predicted.step_seconds; seconds > 0 && FollowsRequest(setting_, *plan, true).ok()) {
        return {absl::OkStatus(), Candidate{name, *std::move(plan), seconds, 0, true}};
      }
      Offered offered = Offer(name, *std::move(plan));
      if (offered.candidate) offered.candidate->finalist = true;
      return offered;
    });
    budget_.stopped_by_clock |= late;
  }

  // The estimator's seconds; nothing where it does not fit.
  void Consider(const std::string& origin, const StagesChoice& choice, std::vector<std::pair<Candidate, StagesChoice>>* found) {
    auto plan = PlanStages(setting_, choice, &budget_);
    if (!plan.ok() || !budget_.Spend(EstimateNodes(setting_))) return;
    const auto price = EstimatePlan(setting_, *plan);
    if (!price.ok() || price->worst_memory > 1) return;
    found->push_back({{origin, *std::move(plan), price->step_seconds, 0, false}, choice});
  }

  bool UsesAllNodes(const Grouping& grouping) const {
    std::set<int> nodes;
    for (const std::vector<int>& group : grouping.groups) {
      for (const int device : group) nodes.insert(setting_.cluster.devices[device].node);
    }
    return nodes.size() == setting_.cluster.nodes.size();
  }

  // Those below `limit` seconds; without devices of some node only where `of_all_nodes` is not asked for.
  std::vector<Grouping> RoughlyBest(size_t count, double limit = kInfinity, bool of_all_nodes = false) const {
    std::vector<std::pair<double, Grouping>> rough;
    const std::vector<int> first_alike = FirstAlike(setting_);
    std::set<std::vector<std::vector<int>>> seen;
    for (const Grouping& candidate : WithSlowLeftOut(setting_, CandidateGroupings(setting_))) {
      Grouping grouping = WithPins(candidate, setting_.pinned_stage);
      std::vector<int> order(grouping.groups.size());
      std::iota(order.begin(), order.end(), 0);
      order = OrderWithPins(grouping, setting_.pinned_stage, order);
      if (of_all_nodes && !UsesAllNodes(grouping)) continue;
      if (order.empty()) continue;  // fewer groups than the pins name stages
      Grouping ordered{{}, grouping.from};
      for (const int group : order) ordered.groups.push_back(std::move(grouping.groups[group]));
      if (!seen.insert(LookOf(first_alike, ordered.groups)).second) continue;
      const double seconds = RoughSeconds(setting_, ordered.groups);
      rough.emplace_back(seconds, std::move(ordered));
    }
    std::stable_sort(rough.begin(), rough.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Grouping> best;
    if (rough.empty() || rough[0].first >= limit) return best;
    for (size_t i = 0; i < std::min(count, rough.size()); ++i) {
      if (rough[i].first < limit || i < kGroupingsLookedAt) best.push_back(std::move(rough[i].second));
    }
    return best;
  }

  static std::vector<std::pair<std::string, StagesChoice>> Variations(const StagesChoice& choice) {
    std::vector<std::pair<std::string, StagesChoice>> out;
    for (const int64_t ministages : {1, 3, 4, 6, 8}) {
      out.emplace_back(absl::StrCat(", ", ministages, " ministages"), choice).second.ministages = ministages;
    }
    if (choice.zero_stage != 2) out.emplace_back(", ZeRO 2", choice).second.zero_stage = 2;
    return out;
  }

  // Takes half of the budget at most; the other half is for what follows.
  int64_t TryTurns(const std::vector<Grouping>& groupings) {
    const int64_t kept = budget_.nodes / 2;
    budget_.nodes -= kept;
    const int64_t before = budget_.nodes;
    std::vector<TurnPlan> found = FindTurnPlans(setting_, groupings, kTurnsOffered, &budget_);
    spent_.turns += before - budget_.nodes;
    OfferAll(found.size(), [&](size_t i) { return Offer(found[i].origin, std::move(found[i].plan)); });
    return kept;
  }

  void TryGroupings(const std::vector<Grouping>& groupings) {
    using Found = std::vector<std::pair<Candidate, StagesChoice>>;
    const auto by_seconds = [](const auto& a, const auto& b) { return Faster(a.first, b.first); };
    // Beside nothing what costs least. Gradients and moments stay, unless nothing else fits.
    const OffloadKinds may = setting_.MayOffload(), waits = {.activations = may.activations, .parameters = may.parameters};
    Found first;
    const auto consider = [&](const OffloadKinds& offload, const char* what) {
      for (size_t i = 0; i < std::min(kGroupingsSplit, groupings.size()); ++i) {
        const StagesChoice layered{groupings[i].groups, 2, 3, offload};
        Consider(absl::StrCat("groups ", groupings[i].from, what), layered, &first);
      }
    };
    consider({}, "");
    if (waits.any()) consider(waits, ", offloaded");
    if (first.empty() && may.optimizer) consider(may, ", with all its state offloaded");
    std::stable_sort(first.begin(), first.end(), by_seconds);
    if (first.size() > kGroupingsVaried) first.resize(kGroupingsVaried);
    Found all = first;
    for (const auto& [candidate, choice] : first) {
      if (choice.groups.size() == 1) continue;  // one group has a ministage for each layer
      for (const auto& [what, other] : Variations(choice)) Consider(absl::StrCat(candidate.origin, what), other, &all);
      StagesChoice reversed = choice;
      std::reverse(reversed.groups.begin(), reversed.groups.end());
      Consider(absl::StrCat(candidate.origin, ", reversed"), reversed, &all);
    }
    std::stable_sort(all.begin(), all.end(), by_seconds);
    all.resize(std::min(all.size(), kStagesOffered));
    OfferAll(all.size(), [&](size_t i) { return Offer(all[i].first.origin, std::move(all[i].first.plan)); });
  }

  // The best, then the best of every schedule and number of pipelines: different ends of the language have different summits.
  std::vector<size_t> Starts() const {
    std::vector<size_t> starts;
    std::set<std::pair<ScheduleFamily, bool>> seen;
    for (const bool distinct : {true, false}) {
      for (size_t i = 0; i < candidates_.size() && starts.size() < kClimbers; ++i) {
        const Plan& plan = candidates_[i].plan;
        if (std::find(starts.begin(), starts.end(), i) != starts.end()) continue;
        if (distinct && BestKnown(candidates_[i]) > kFarStart * BestKnown(candidates_[0])) continue;
        if (distinct && !seen.insert({plan.schedule, plan.pipelines.size() > 1}).second) continue;
        starts.push_back(i);
      }
    }
    return starts;
  }

  // Prices as many as the budget allows, the fastest by simulation first: what climbs shall be fast as it runs.
  void PriceCandidates() {
    std::stable_sort(candidates_.begin(), candidates_.end(), Faster);
    std::vector<Candidate*> asked;
    int64_t left = budget_.nodes / kPartForPrices;
    for (Candidate& candidate : candidates_) {
      const int64_t nodes = PriceNodes(candidate.plan);
      if (nodes == 0) candidate.price = candidate.seconds;
      if (nodes == 0 || nodes > left) continue;
      left -= nodes;
      budget_.nodes -= nodes;
      spent_.prices += nodes;
      asked.push_back(&candidate);
    }
    InParallel(asked.size(), [&](size_t i) {
      const auto priced = prices_.PriceOf(setting_, asked[i]->plan);
      if (!priced.ok()) return;
      asked[i]->fits = priced->fits;
      asked[i]->price = priced->seconds;
    });
    for (const Candidate& candidate : candidates_) NoteMiss(candidate.fits);
    std::erase_if(candidates_, [](const Candidate& candidate) { return !candidate.fits.ok(); });
    std::stable_sort(candidates_.begin(), candidates_.end(), Cheaper);
  }

  absl::StatusOr<FoundPlan> Climb(double known) {
    PriceCandidates();
    if (candidates_.empty()) return why_not_;
    if (BestKnown(candidates_[0]) > kNear * known) return NothingNear();
    const std::vector<size_t> starts = Starts();
    struct Climbed {
      SearchBudget budget;
      absl::StatusOr<Evaluation> end = absl::UnknownError("not run");
    };
    std::vector<Climbed> climbed(starts.size());
    SeenPlans seen;
    const int64_t each = kClimbersAtOnce * budget_.nodes / static_cast<int64_t>(starts.size());
    InParallel(starts.size(), [&](size_t i) {
      climbed[i].budget = budget_;
      climbed[i].budget.nodes = each;
      climbed[i].end = Polish(setting_, candidates_[starts[i]].plan, &climbed[i].budget, &seen);
    });
    const std::string start = candidates_[0].origin;
    for (size_t i = 0; i < starts.size(); ++i) {
      budget_.stopped_by_clock |= climbed[i].budget.stopped_by_clock;
      spent_.climbing += each - climbed[i].budget.nodes;
      if (!climbed[i].end.ok() || !climbed[i].end->does_not_fit.empty()) continue;
      Plan& plan = climbed[i].end->plan;
      if (!FollowsRequest(setting_, plan, false).ok()) continue;
      const double seconds = plan.predicted.step_seconds;
      candidates_.push_back({candidates_[starts[i]].origin, std::move(plan), seconds, 0, true});
    }
    std::vector<Finalist> finalists;  // every strategy's, the climbed, and what has a price anyway
    for (Candidate& candidate : candidates_) {
      if (!candidate.finalist && candidate.price == 0) continue;
      finalists.push_back({std::move(candidate.origin), std::move(candidate.plan), candidate.price});
    }
    MOTLEY_ASSIGN_OR_RETURN(Finalist best, ChooseFinalist(setting_, std::move(finalists), &prices_));
    best.plan.strategy = "auto";
    best.plan.predicted.notes.push_back(
        absl::StrCat("found from ", best.origin, best.origin == start ? "" : absl::StrCat(" (before climbing ", start, " led)")));
    if (budget_.stopped_by_clock)
      best.plan.predicted.notes.push_back("the search stopped at the deadline: another run may answer otherwise");
    return FoundPlan{std::move(best.plan), best.price};
  }

  const Setting& setting_;
  PriceBook& prices_;
  SpentNodes& spent_;
  SearchBudget budget_;
  std::vector<Candidate> candidates_;
  absl::Status why_not_;  // of what was offered, the nearest miss
};

}  // namespace

absl::StatusOr<FoundPlan> SearchWhole(const Setting& setting, PriceBook* prices, SpentNodes* spent) {
  return AutoSearch(setting, prices, spent).Run();
}

absl::StatusOr<FoundPlan> SearchPart(const Setting& part, double known, PriceBook* prices, SpentNodes* spent) {
  return AutoSearch(part, prices, spent).RunPart(known);
}

}  // namespace motley::planner
