#include "planner/strategies/auto/auto_finalists.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/search/plan_moves.h"
#include "planner/search/polish.h"
#include "planner/setting/request_check.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr size_t kRescheduled = 4, kLacking = 2;
constexpr double kNotSlower = 1.001;  // by Evaluate; a thousandth is noise of the model
constexpr double kEstimateError = 1.1;
constexpr double kMostTooLong = 1.15;  // Evaluate's seconds over Price's
constexpr int64_t kNodesOfAClimb = 20'000;

absl::StatusOr<Evaluation> PriceUnfinished(const Setting& setting, Plan plan) {
  absl::StatusOr<Evaluation> priced = Price(setting, std::move(plan));
  if (priced.ok()) {
    priced->plan.training.reset();
    priced->plan.ownership.reset();
  }
  return priced;
}

class FinalistChoice {
 public:
  FinalistChoice(const Setting& setting, std::vector<Finalist> finalists, PriceBook* prices)
      : setting_(setting), all_(std::move(finalists)), prices_(*prices) {}

  absl::StatusOr<Finalist> Make() {
    absl::StatusOr<size_t> fastest = Fastest();
    if (Add(Rescheduled())) fastest = Fastest();
    if (Add(Climbed(Starts(fastest)))) fastest = Fastest();
    MOTLEY_RETURN_IF_ERROR(fastest.status());
    return std::move(all_[*fastest]);
  }

 private:
  absl::StatusOr<size_t> Fastest() {
    std::vector<Contender> contenders;
    for (const Finalist& finalist : all_) contenders.push_back({&finalist.plan, finalist.price});
    absl::StatusOr<size_t> fastest = FindFastest(setting_, &contenders, &prices_);
    for (size_t i = 0; i < all_.size(); ++i) all_[i].price = contenders[i].price;
    return fastest;
  }

  bool Add(std::vector<Finalist> more) {
    std::move(more.begin(), more.end(), std::back_inserter(all_));
    return !more.empty();
  }

  void AddEvaluated(std::string origin, Plan plan, double limit, std::vector<Finalist>* to) const {
    absl::StatusOr<Evaluation> evaluation = Evaluate(setting_, std::move(plan));
    if (!evaluation.ok() || evaluation->plan.predicted.step_seconds > limit) return;
    to->push_back({std::move(origin), std::move(evaluation->plan), 0});
  }

  double Estimated(const Plan& plan) const {
    const absl::StatusOr<QuickPrice> estimate = EstimatePlan(setting_, plan);
    return estimate.ok() ? estimate->step_seconds : kInfinity;
  }

  static double Evaluated(const Finalist& finalist) { return finalist.plan.predicted.step_seconds; }

  // Those that programs can tell apart, best first by `seconds`; less than `limit` only.
  template <typename Seconds>
  std::vector<const Finalist*> Best(Seconds seconds, double limit) const {
    std::vector<const Finalist*> best;
    for (const Finalist& finalist : all_) {
      if (PriceNodes(finalist.plan) > 0 && seconds(finalist) < limit) best.push_back(&finalist);
    }
    std::stable_sort(best.begin(), best.end(), [&](auto* a, auto* b) { return seconds(*a) < seconds(*b); });
    return best;
  }

  std::vector<Finalist> Rescheduled() const {
    std::vector<const Finalist*> best = Best([](const Finalist& f) { return f.price > 0 ? f.price : kInfinity; }, kInfinity);
    best.resize(std::min(best.size(), kRescheduled));
    std::vector<Finalist> more;
    for (const Finalist* finalist : best) {
      const double estimate = Estimated(finalist->plan);
      for (Move& move : ScheduleMoves(setting_, finalist->plan)) {
        if (!setting_.MayBe(move.plan) || !FollowsRequest(setting_, move.plan, true).ok()) continue;
        if (Estimated(move.plan) > kEstimateError * estimate) continue;
        AddEvaluated(absl::StrCat(finalist->origin, ", ", move.what), std::move(move.plan), kNotSlower * Evaluated(*finalist),
                     &more);
      }
    }
    return more;
  }

  // The fastest, and those that lack memory and may be faster than it.
  std::vector<const Finalist*> Starts(const absl::StatusOr<size_t>& fastest) {
    std::vector<const Finalist*> starts;
    const double known = fastest.ok() ? all_[*fastest].price : kInfinity;
    const auto few_nodes = [](const Finalist& finalist) {
      const int64_t nodes = PriceNodes(finalist.plan);
      return nodes > 0 && nodes <= kNodesOfAClimb;
    };
    if (fastest.ok() && few_nodes(all_[*fastest])) starts.push_back(&all_[*fastest]);
    for (const Finalist* finalist : Best(Evaluated, kMostTooLong * known)) {
      if (finalist->price > 0 || starts.size() > kLacking || !few_nodes(*finalist)) continue;
      const auto priced = prices_.PriceOf(setting_, finalist->plan);  // known: what is so fast was asked
      if (priced.ok() && !priced->fits.ok()) starts.push_back(finalist);
    }
    return starts;
  }

  std::vector<Finalist> Climbed(const std::vector<const Finalist*>& starts) const {
    std::vector<Finalist> more;
    const auto add = [&](const Finalist& start, absl::StatusOr<Evaluation> end) {
      if (end.ok() && FollowsRequest(setting_, end->plan, false).ok()) {
        AddEvaluated(start.origin, std::move(end->plan), kInfinity, &more);
      }
    };
    for (const Finalist* start : starts) {
      SearchBudget budget{kNodesOfAClimb};
      if (start->price == 0) add(*start, Repair(setting_, start->plan, &budget, PriceUnfinished));
      add(*start, Polish(setting_, start->plan, &budget, nullptr, PriceUnfinished));
    }
    return more;
  }

  const Setting& setting_;
  std::vector<Finalist> all_;
  PriceBook& prices_;
};

}  // namespace

absl::StatusOr<Finalist> ChooseFinalist(const Setting& setting, std::vector<Finalist> finalists, PriceBook* prices) {
  return FinalistChoice(setting, std::move(finalists), prices).Make();
}

}  // namespace motley::planner
