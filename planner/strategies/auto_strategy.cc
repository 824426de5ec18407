// auto: the best plan of the whole language that a bounded search finds. docs/strategies.md, "auto".
//
//   1 every strategy's own plan (tuned), simulated: auto is never worse than the best of them
//   2 layered pipelines over candidate groupings with everything uneven inside (auto_stages): plans that no strategy has
//   3 the few best of 1 and 2 climb (polish): layers, microbatches, recomputation by operator, schedules, sharding, offload
// Deterministic: the budget counts search nodes; a deadline is opt-in and marks the plan.
#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "planner/evaluate.h"
#include "planner/request_check.h"
#include "planner/strategies/auto_stages.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/groupings.h"
#include "planner/strategies/polish.h"

namespace motley::planner {
namespace {

constexpr size_t kClimbers = 3;          // plans that are polished
constexpr size_t kStagesOffered = 8;    // pipelines over groups that are simulated
constexpr size_t kGroupingsSplit = 8;    // by the rough bound; their stages are split exactly
constexpr size_t kGroupingsVaried = 3;   // whose ministages, sharding and order are varied

// Rough seconds of a step on these groups: each computes its proportional part of the layers at its devices' best rates, or gathers
// twice and reduces once for each layer, whichever is longer.
double RoughSeconds(const Setting& setting, const Grouping& grouping) {
  const double samples = std::clamp<double>(static_cast<double>(setting.workload.global_batch) / setting.num_devices(), 1, 8);
  std::vector<double> rates;
  double total = 0;
  for (const std::vector<int>& group : grouping.groups) {
    double rate = 0;
    for (const int device : group) {
      const int kind = setting.KindOf(device);
      rate += samples / (setting.costs.ForwardSeconds(kind, UnitKind::kLayer, samples) +
                         setting.costs.BackwardSeconds(kind, UnitKind::kLayer, samples));
    }
    rates.push_back(rate);
    total += rate;
  }
  const double layer_bytes = static_cast<double>(setting.costs.UnitElements(UnitKind::kLayer) * setting.costs.element_bytes());
  const auto layers = static_cast<double>(setting.workload.model.num_layers);
  double seconds = 0;
  for (size_t g = 0; g < grouping.groups.size(); ++g) {
    const double own = layers * rates[g] / total;
    const double compute = own * static_cast<double>(setting.workload.global_batch) / rates[g];
    const double gather = setting.links.SecondsAlone(setting.links.Ring(Collective::kAllGather, grouping.groups[g], layer_bytes));
    seconds = std::max(seconds, std::max(compute, own * 3 * gather));
  }
  return seconds;
}

struct Candidate {
  std::string origin;  // "zorse", "groups by node"
  Plan plan;
  double seconds = 0;
};

class AutoSearch {
 public:
  explicit AutoSearch(const Setting& setting) : setting_(setting), budget_(BudgetOf(setting.request)) {}

  absl::StatusOr<Plan> Run() {
    AskStrategies();
    const int64_t all = budget_.nodes, for_climbing = all - all * 2 / 5;
    budget_.nodes -= for_climbing;
    TryGroupings();
    budget_.nodes += for_climbing;
    if (candidates_.empty()) {
      return why_not_.ok() ? absl::ResourceExhaustedError("no strategy found a plan that fits") : why_not_;
    }
    return Climb();
  }

 private:
  static bool Faster(const Candidate& a, const Candidate& b) { return std::tie(a.seconds, a.origin) < std::tie(b.seconds, b.origin); }

  // Simulated; kept when it fits.
  void Offer(std::string origin, Plan plan) {
    if (const absl::Status follows = FollowsRequest(setting_, plan, true); !follows.ok()) {
      if (why_not_.ok()) why_not_ = follows;
      return;
    }
    auto priced = Evaluate(setting_, std::move(plan));
    if (!priced.ok()) return;
    if (!priced->does_not_fit.empty()) {
      if (why_not_.ok()) why_not_ = absl::ResourceExhaustedError(priced->does_not_fit[0]);
      return;
    }
    const double seconds = priced->plan.predicted.step_seconds;
    candidates_.push_back({std::move(origin), std::move(priced->plan), seconds});
  }

  void AskStrategies() {
    for (const CatalogEntry& entry : Catalog()) {
      if (entry.name == "auto") continue;
      auto plan = entry.plan(setting_);
      if (plan.ok()) {
        Offer(std::string(entry.name), *std::move(plan));
      } else {
        why_not_ = plan.status();
      }
    }
  }

  bool HostMemoryKnown() const {
    return std::all_of(setting_.cluster.nodes.begin(), setting_.cluster.nodes.end(), [](const ClusterNode& node) {
      return node.host_memory_bytes > 0 && node.host_link_bytes_per_second > 0;
    });
  }

  // The estimator's seconds; nothing where it does not fit.
  void Consider(const std::string& origin, const StagesChoice& choice, std::vector<std::pair<Candidate, StagesChoice>>* found) {
    auto plan = PlanStages(setting_, choice, &budget_);
    if (!plan.ok() || !budget_.Spend(kEstimateNodes)) return;
    const auto price = EstimatePlan(setting_, *plan);
    if (!price.ok() || price->worst_memory > 1) return;
    found->push_back({{origin, *std::move(plan), price->step_seconds}, choice});
  }

  std::vector<Grouping> RoughlyBest() const {
    std::vector<std::pair<double, Grouping>> rough;
    for (const Grouping& candidate : CandidateGroupings(setting_)) {
      Grouping grouping = WithPins(candidate, setting_.pinned_stage);
      std::vector<int> order(grouping.groups.size());
      std::iota(order.begin(), order.end(), 0);
      order = OrderWithPins(grouping, setting_.pinned_stage, order);
      if (order.empty()) continue;  // fewer groups than the pins name stages
      Grouping ordered{{}, grouping.from};
      for (const int group : order) ordered.groups.push_back(std::move(grouping.groups[static_cast<size_t>(group)]));
      const double seconds = RoughSeconds(setting_, ordered);
      rough.emplace_back(seconds, std::move(ordered));
    }
    std::stable_sort(rough.begin(), rough.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Grouping> best;
    for (size_t i = 0; i < std::min(kGroupingsSplit, rough.size()); ++i) best.push_back(std::move(rough[i].second));
    return best;
  }

  static std::vector<std::pair<std::string, StagesChoice>> Variations(const StagesChoice& choice) {
    std::vector<std::pair<std::string, StagesChoice>> out;
    const bool layered = choice.schedule == ScheduleFamily::kLayered;
    for (const int64_t ministages : {1, 3, 4, 6, 8}) {
      if (!layered) break;
      out.emplace_back(absl::StrCat(", ", ministages, " ministages"), choice).second.ministages = ministages;
    }
    for (const int64_t microbatches : {1, 2, 6}) {
      if (layered) break;
      out.emplace_back(absl::StrCat(", ", microbatches, " microbatches a stage"), choice).second.microbatches_per_stage = microbatches;
    }
    for (const int zero : {0, 1, 2, 3}) {
      if (zero != choice.zero_stage && (!layered || zero == 2)) out.emplace_back(absl::StrCat(", ZeRO ", zero), choice).second.zero_stage = zero;
    }
    return out;
  }

  void TryGroupings() {
    using Found = std::vector<std::pair<Candidate, StagesChoice>>;
    const auto by_seconds = [](const auto& a, const auto& b) { return Faster(a.first, b.first); };
    const bool offload = HostMemoryKnown();
    Found first;
    for (const Grouping& grouping : RoughlyBest()) {
      StagesChoice layered{grouping.groups, 2, 3};
      Consider(absl::StrCat("groups ", grouping.from), layered, &first);
      layered.offload = true;
      if (offload) Consider(absl::StrCat("groups ", grouping.from, ", offloaded"), layered, &first);
      if (grouping.groups.size() > 1) {
        Consider(absl::StrCat("groups ", grouping.from, ", 1F1B"), {grouping.groups, 1, 1, false, ScheduleFamily::k1F1B, 3}, &first);
      }
    }
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
    for (size_t i = 0; i < std::min(all.size(), kStagesOffered); ++i) Offer(all[i].first.origin, std::move(all[i].first.plan));
  }

  absl::StatusOr<Plan> Climb() {
    std::stable_sort(candidates_.begin(), candidates_.end(), Faster);
    Candidate best = candidates_[0];
    const std::string start = best.origin;
    for (size_t i = 0; i < std::min(kClimbers, candidates_.size()); ++i) {
      SearchBudget share = budget_;
      share.nodes = budget_.nodes / static_cast<int64_t>(kClimbers - i);
      const int64_t before = share.nodes;
      const auto climbed = Polish(setting_, candidates_[i].plan, &share);
      budget_.nodes -= before - share.nodes;
      budget_.stopped_by_clock |= share.stopped_by_clock;
      if (!climbed.ok() || !climbed->does_not_fit.empty()) continue;
      Candidate other{candidates_[i].origin, climbed->plan, climbed->plan.predicted.step_seconds};
      if (Faster(other, best)) best = std::move(other);
    }
    best.plan.strategy = "auto";
    best.plan.predicted.notes.push_back(absl::StrCat("found from ", best.origin, best.origin == start ? "" : absl::StrCat(" (before climbing ", start, " led)")));
    if (budget_.stopped_by_clock) best.plan.predicted.notes.push_back("the search stopped at the deadline: another run may answer otherwise");
    return best.plan;
  }

  const Setting& setting_;
  SearchBudget budget_;
  std::vector<Candidate> candidates_;
  absl::Status why_not_;
};

}  // namespace

absl::StatusOr<Plan> PlanAuto(const Setting& setting) { return AutoSearch(setting).Run(); }

}  // namespace motley::planner
