// Problem:    split_problem.h.
// Method:     The optimum lies on F x G, the finitely many forward and backward times (or the collectives' floors). Whether a
//             pair (F, G) is feasible is a knapsack (state_knapsack.h), monotone in both. A few rays through the plane give a
//             good sum at once. Then F's range is divided: no F of an interval [a, b] can beat the sum S that is known unless b
//             is feasible with S - a, which is one question. What stays feasible is divided on; the few intervals that remain
//             short are looked through time by time, each with G by bisection. Times are never listed: the next to a bound is
//             asked for. Tables grow only as far as needed (table_growth.h).
// Complexity: a few hundred questions, each kinds x log(batch), or x (batch + microbatch sizes) where memory has to decide.
// Limits:     Skew levels are given, not searched between. Memory in whole bytes.
#include <algorithm>
#include <cmath>

#include "planner/split/option_table.h"
#include "planner/split/split_problem.h"
#include "planner/split/state_knapsack.h"
#include "planner/split/table_growth.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

using Pass = OptionTable::Pass;

struct Best {
  double seconds = kInfinity;
  double forward = 0, backward = 0;
  size_t level = 0;
};

// Searches one skew level. Improves `best` strictly or leaves it.
class LevelSearch {
 public:
  LevelSearch(const SplitProblem& problem, size_t level, std::vector<OptionTable>* tables, StateKnapsack* knapsack, Best* best)
      : tolerance_(problem.tolerance),
        level_index_(level),
        level_(problem.levels[level]),
        tables_(*tables),
        knapsack_(*knapsack),
        best_(*best) {}

  void Run() {
    least_f_ = level_.forward_seconds;
    least_g_ = level_.backward_seconds;
    if (least_f_ + least_g_ >= best_.seconds) return;
    if (Fits(least_f_, least_g_)) return Record(least_f_, least_g_);
    const double most_f = Largest(Pass::kForward, kInfinity, true), most_g = Largest(Pass::kBackward, kInfinity, true);
    if (!Fits(most_f, most_g)) return;
    Record(most_f, most_g);
    for (const double slope : Slopes()) FollowRay(slope, most_f, most_g);
    // No pass can be shorter than it is when the other may last for ever.
    const double least_g = Least([&](double g) { return Fits(most_f, g); }, least_g_, most_g, kCoarse);
    least_f_ = Least([&](double f) { return Fits(f, most_g); }, least_f_, most_f, kCoarse);
    least_g_ = least_g;
    Divide(least_f_, best_.seconds - least_g_);
  }

 private:
  // Intervals of F are divided down to this part of the step.
  static constexpr double kShort = 1e-9;
  // The ends of F's range need not be sharper: dividing drops what lies beyond them at once.
  static constexpr double kCoarse = 1e-4;

  bool Fits(double f, double g) const { return knapsack_.Fits(f, g, level_); }
  double Floor(Pass pass) const { return pass == Pass::kForward ? level_.forward_seconds : level_.backward_seconds; }
  // The largest bound, a time or the floor, up to (below, if `strictly`) one that the floor does not exceed.
  double Largest(Pass pass, double bound, bool strictly) const {
    double largest = Floor(pass);
    for (const OptionTable& table : tables_) largest = std::max(largest, table.LargestTime(pass, bound, strictly));
    return largest;
  }
  // The least bound above `bound`.
  double Above(Pass pass, double bound) const {
    if (bound < Floor(pass)) return Floor(pass);
    double next = kInfinity;
    for (const OptionTable& table : tables_) next = std::min(next, table.NextTime(pass, bound));
    return next;
  }
  void Record(double f, double g) {
    if (f + g < best_.seconds) best_ = {f + g, f, g, level_index_};
  }
  // Just short of beating nothing: the largest G with which F would improve by more than the tolerance.
  double Ceiling(double f) const { return std::nextafter(best_.seconds * (1 - tolerance_) - f, 0); }

  // Backward per forward seconds of one microbatch: the extremes over kinds and policies, and between.
  std::vector<double> Slopes() const {
    double low = kInfinity, high = 0;
    for (const OptionTable& table : tables_) {
      const auto [least, most] = table.PassRatios();
      low = std::min(low, least);
      high = std::max(high, most);
    }
    if (!(low > 0) || !(high < kInfinity)) return {1};
    return {low, std::sqrt(low * high), high};
  }
  // The shortest pair with G = slope x F, floors counted, to a thousandth.
  void FollowRay(double slope, double most_f, double most_g) {
    double high = std::min(best_.seconds, most_f + most_g), low = 0;  // F + G
    const auto f_at = [&](double sum) { return std::max(level_.forward_seconds, sum / (1 + slope)); };
    const auto g_at = [&](double sum) { return std::max(level_.backward_seconds, sum - sum / (1 + slope)); };
    if (!Fits(f_at(high), g_at(high))) return;
    while (high - low > 1e-3 * high) {
      const double middle = (low + high) / 2;
      (Fits(f_at(middle), g_at(middle)) ? high : low) = middle;
    }
    Record(Largest(Pass::kForward, f_at(high), false), Largest(Pass::kBackward, g_at(high), false));
  }

  // About the least value in [low, high] with fits(value), from below: nothing below the answer fits. `high` fits.
  template <typename Function>
  double Least(Function fits, double low, double high, double precision) const {
    if (fits(low)) return low;
    while (high - low > precision * high) {
      const double middle = (low + high) / 2;
      (fits(middle) ? high : low) = middle;
    }
    return low;
  }
  // The least backward bound that fits with f; `high` does.
  double LeastBackward(double f, double high) const {
    double low = Least([&](double g) { return Fits(f, g); }, least_g_, high, kShort);
    // Few times are left between.
    for (low = Above(Pass::kBackward, std::nextafter(low, -1)); !Fits(f, low); low = Above(Pass::kBackward, low)) continue;
    return low;
  }

  // A good G for f, to a part of what it improves by; `high` fits.
  void RecordAbout(double f, double high) {
    double low = least_g_;
    while (high - low > kShort * high && high - low > 0.1 * (best_.seconds - f - high)) {
      const double middle = (low + high) / 2;
      (Fits(f, middle) ? high : low) = middle;
    }
    Record(Largest(Pass::kForward, f, false), Largest(Pass::kBackward, high, false));
  }

  // Forward bounds in [a, b].
  void Divide(double a, double b) {
    b = std::min(b, best_.seconds - least_g_);
    if (a > b || a + least_g_ >= best_.seconds || !Fits(b, Ceiling(a))) return;
    if (b - a <= kShort * best_.seconds) return LookThrough(a, b);
    const double middle = a + (b - a) / 2;
    if (Fits(middle, Ceiling(middle))) RecordAbout(middle, Ceiling(middle));
    Divide(a, middle);
    Divide(middle, b);
  }
  void LookThrough(double a, double b) {
    for (double f = Above(Pass::kForward, std::nextafter(a, -1)); f <= b && f + least_g_ < best_.seconds;
         f = Above(Pass::kForward, f)) {
      if (Fits(f, Ceiling(f))) Record(f, LeastBackward(f, Ceiling(f)));
    }
  }

  const double tolerance_;
  const size_t level_index_;
  const SkewLevel& level_;
  std::vector<OptionTable>& tables_;
  StateKnapsack& knapsack_;
  Best& best_;
  double least_f_ = 0, least_g_ = 0;
};

// Beats `best` or returns it.
Best Search(const SplitProblem& problem, std::vector<OptionTable>* tables, StateKnapsack* knapsack, Best best) {
  for (size_t l = 0; l < problem.levels.size(); ++l) LevelSearch(problem, l, tables, knapsack, &best).Run();
  return best;
}

// The bounds of the collectives leave room: a smaller scale of both still fits, and balances the devices better.
double Tighten(const Best& best, const SkewLevel& level, StateKnapsack* knapsack) {
  double low = 0, high = 1;
  for (int i = 0; i < 16; ++i) {
    const double scale = (low + high) / 2;
    (knapsack->Fits(best.forward * scale, best.backward * scale, level) ? high : low) = scale;
  }
  return high;
}

// Batches at the (tightened) optimum; then every device in turn takes the fastest way that leaves room for the state.
void Choose(const SplitProblem& problem, std::vector<OptionTable>* tables, const Best& best, StateKnapsack* knapsack,
            SplitAnswer* answer) {
  const SkewLevel& level = problem.levels[best.level];
  // Bounds that were recorded are times of ways; rounding may tell such a time from the bound that it was found under.
  double slack = 1;
  std::vector<std::vector<int64_t>> batches;
  const double scale = Tighten(best, level, knapsack);
  for (double part = 1e-15; batches.empty() && part < 1e-6; part *= 10) {
    batches = knapsack->Batches(best.forward * scale * slack, best.backward * scale * slack, level);
    slack = 1 + part;
  }
  const double forward = best.forward * std::max(slack, 1 + 1e-14), backward = best.backward * std::max(slack, 1 + 1e-14);
  const auto within = [&](const Option& o) { return o.forward <= forward && o.backward <= backward; };
  const auto state_beside = [&](const OptionTable& table, const Option& o) {
    return StateLimit(problem, level, table.capacity() - o.bytes);
  };
  const auto frugal_way = [&](OptionTable& table, int64_t b) {
    const std::vector<Option>& ways = table.Ways(b);
    return std::find_if(ways.begin(), ways.end(), within);
  };
  int64_t spare = -problem.state_bytes;
  for (size_t k = 0; k < tables->size(); ++k) {
    for (const int64_t b : batches[k]) spare += state_beside((*tables)[k], *frugal_way((*tables)[k], b));
  }
  for (size_t k = 0; k < tables->size(); ++k) {
    OptionTable& table = (*tables)[k];
    auto& choices = answer->choices.emplace_back();
    for (const int64_t b : batches[k]) {
      const auto frugal = frugal_way(table, b);
      const Option* chosen = &*frugal;
      for (const Option& o : table.Ways(b)) {
        if (!within(o) || o.forward + o.backward >= chosen->forward + chosen->backward) continue;
        if (state_beside(table, *frugal) - state_beside(table, o) <= spare) chosen = &o;
      }
      spare -= state_beside(table, *frugal) - state_beside(table, *chosen);
      choices.push_back(
          {b, std::min(b, chosen->microbatch), chosen->recompute, chosen->forward, chosen->backward, chosen->bytes});
    }
  }
}

SplitAnswer Solve(const SplitProblem& problem, const ExtendTables& extend, int64_t largest) {
  SplitAnswer answer;
  if (problem.least_batch * CountDevices(problem) > problem.batch) return answer;
  StartTables(problem, largest, extend);
  Best best;
  while (true) {
    std::vector<OptionTable> tables;
    tables.reserve(problem.kinds.size());
    for (const SplitKind& kind : problem.kinds) tables.emplace_back(kind, problem.batch);
    StateKnapsack knapsack(problem, &tables);
    best = Search(problem, &tables, &knapsack, best);
    // Nothing beats the floors of the cheapest collectives.
    const SkewLevel& floor = problem.levels.front();
    const bool at_floor = best.seconds <= floor.forward_seconds + floor.backward_seconds;
    if (!at_floor && GrowTables(problem, largest, best.seconds, extend)) continue;
    if (best.seconds < kInfinity) {
      answer.feasible = true;
      answer.seconds = best.seconds;
      answer.level = best.level;
      Choose(problem, &tables, best, &knapsack, &answer);
    } else {
      const int64_t most = knapsack.MostState(kInfinity, kInfinity, problem.levels.back());
      answer.missing_bytes = most < 0 ? 0 : problem.state_bytes - most;
    }
    return answer;
  }
}

}  // namespace

SplitAnswer SolveSplit(const SplitProblem& problem) { return Solve(problem, nullptr, INT64_MAX); }

SplitAnswer SolveSplit(SplitProblem* problem, int64_t largest_microbatch, const ExtendTables& extend) {
  return Solve(*problem, extend, largest_microbatch);
}

}  // namespace motley::planner
