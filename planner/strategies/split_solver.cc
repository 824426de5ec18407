// Problem:    split_problem.h.
// Method:     The optimum lies on F x G, the finitely many forward and backward times (or the collectives' floors). Whether a
//             pair (F, G) is feasible is a knapsack (state_knapsack.h), monotone in both, so the least feasible G falls as F
//             grows. Divide F's values: an interval whose best conceivable sum, its least F plus the G of its greatest F, does
//             not beat what is known is dropped; otherwise its middle F gets its G by bisection.
//             Tables grow only as far as needed: b samples take at least b times a device's best rates, so a batch that
//             would exceed the objective found, the collectives' floors counted, cannot be part of a better one.
// Complexity: pairs tested x (kinds x batches within bounds x ways); the pairs are a few hundred in practice.
// Limits:     Skew levels are given, not searched between. Memory in whole bytes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/strategies/option_table.h"
#include "planner/strategies/split_problem.h"
#include "planner/strategies/state_knapsack.h"

namespace motley::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastSeconds = 1e-30;  // keeps rates of zero divisible

// The distinct times at least `floor`, and the floor itself when nothing smaller is allowed to matter.
std::vector<double> BoundsFrom(const std::vector<double>& sorted, double floor) {
  std::vector<double> bounds = {floor};
  bounds.insert(bounds.end(), std::upper_bound(sorted.begin(), sorted.end(), floor), sorted.end());
  return bounds;
}

struct Best {
  double seconds = kInfinity;
  double forward = 0, backward = 0;
  size_t level = 0;
};

// Searches one skew level. Improves `best` strictly or leaves it.
class LevelSearch {
 public:
  LevelSearch(const SplitProblem& problem, size_t level, const std::vector<double>& forward, const std::vector<double>& backward,
              StateKnapsack* knapsack, Best* best)
      : level_index_(level),
        level_(problem.levels[level]),
        forward_(BoundsFrom(forward, level_.forward_seconds)),
        backward_(BoundsFrom(backward, level_.backward_seconds)),
        knapsack_(*knapsack),
        best_(*best) {}

  void Run() {
    const int last_f = static_cast<int>(forward_.size()) - 1, last_g = static_cast<int>(backward_.size()) - 1;
    if (!Improves(forward_[0], backward_[0]) || !Fits(last_f, last_g)) return;
    const int least_g = Bisect(last_f, 0, last_g);
    Record(last_f, least_g);
    Divide(-1, last_f, least_g, last_g + 1);
  }

 private:
  bool Improves(double f, double g) const { return f + g < best_.seconds; }
  bool Fits(int f, int g) const {
    return knapsack_.Fits(forward_[static_cast<size_t>(f)], backward_[static_cast<size_t>(g)], level_);
  }
  // Least feasible g in [low, high] for this f, given that high is feasible.
  int Bisect(int f, int low, int high) const {
    while (low < high) {
      const int middle = low + (high - low) / 2;
      if (Fits(f, middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high;
  }
  void Record(int f, int g) {
    const double seconds = forward_[static_cast<size_t>(f)] + backward_[static_cast<size_t>(g)];
    if (seconds < best_.seconds)
      best_ = {seconds, forward_[static_cast<size_t>(f)], backward_[static_cast<size_t>(g)], level_index_};
  }

  // Forward bounds strictly between lo and hi; their least g is at least low_g (that of hi) and at most high_g (that of lo,
  // where one past the end means that lo has none).
  void Divide(int lo, int hi, int low_g, int high_g) {
    if (low_g >= high_g || low_g >= static_cast<int>(backward_.size())) return;
    const double least_backward = backward_[static_cast<size_t>(low_g)];
    // Bounds too large for any improvement drop out.
    hi = static_cast<int>(std::partition_point(forward_.begin() + lo + 1, forward_.begin() + hi,
                                               [&](double f) { return Improves(f, least_backward); }) -
                          forward_.begin());
    if (hi - lo < 2) return;
    const int middle = lo + (hi - lo) / 2;
    const double f = forward_[static_cast<size_t>(middle)];
    // The largest g that would still improve.
    const int ceiling = static_cast<int>(std::partition_point(backward_.begin() + low_g, backward_.end(),
                                                              [&](double g) { return Improves(f, g); }) -
                                         backward_.begin()) -
                        1;
    const int tried = std::min(ceiling, high_g);
    int middle_low = ceiling + 1, middle_high = high_g;  // what is known of the middle's least g
    if (tried < static_cast<int>(backward_.size()) && (tried == high_g || Fits(middle, tried))) {
      middle_low = middle_high = Bisect(middle, low_g, tried);
      Record(middle, middle_low);
    }
    Divide(lo, middle, middle_low, high_g);
    Divide(middle, hi, low_g, middle_high);
  }

  const size_t level_index_;
  const SkewLevel& level_;
  const std::vector<double> forward_, backward_;
  StateKnapsack& knapsack_;
  Best& best_;
};

// How far each kind's table must go at first: one and a half times its part in a perfect division.
std::vector<int64_t> FirstLimits(const SplitProblem& problem, const std::vector<SampleRates>& rates) {
  double speed = 0;
  for (size_t k = 0; k < rates.size(); ++k) speed += problem.kinds[k].count / std::max(rates[k].both, kLeastSeconds);
  std::vector<int64_t> limits;
  for (const SampleRates& rate : rates) {
    const double part = static_cast<double>(problem.batch) / speed / std::max(rate.both, kLeastSeconds);
    limits.push_back(std::min(problem.batch, static_cast<int64_t>(1.5 * part) + 2));
  }
  return limits;
}

// No larger batch of this kind can be part of a split that beats `seconds`.
int64_t UsefulLimit(const SplitProblem& problem, const SampleRates& rate, double seconds) {
  const SkewLevel& floor = problem.levels.front();
  const double useful = std::min({seconds / std::max(rate.both, kLeastSeconds),
                                  (seconds - floor.backward_seconds) / std::max(rate.forward, kLeastSeconds),
                                  (seconds - floor.forward_seconds) / std::max(rate.backward, kLeastSeconds)});
  // Rounded up by a hair: a table that is one too long costs nothing.
  const double limit = useful * (1 + 1e-9);
  return limit < static_cast<double>(problem.batch) ? static_cast<int64_t>(limit) : problem.batch;
}

Best Search(const SplitProblem& problem, const std::vector<OptionTable>& tables, StateKnapsack* knapsack) {
  std::vector<double> forward, backward;
  for (const OptionTable& table : tables) {
    for (const Option& o : table.all()) {
      forward.push_back(o.forward);
      backward.push_back(o.backward);
    }
  }
  for (std::vector<double>* times : {&forward, &backward}) {
    std::sort(times->begin(), times->end());
    times->erase(std::unique(times->begin(), times->end()), times->end());
  }
  Best best;
  for (size_t l = 0; l < problem.levels.size(); ++l) LevelSearch(problem, l, forward, backward, knapsack, &best).Run();
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
void Choose(const SplitProblem& problem, const std::vector<OptionTable>& tables, const Best& best, StateKnapsack* knapsack,
            SplitAnswer* answer) {
  const SkewLevel& level = problem.levels[best.level];
  const double scale = Tighten(best, level, knapsack);
  const auto batches = knapsack->BestBatches(best.forward * scale, best.backward * scale, level);
  const auto within = [&](const Option& o) { return o.forward <= best.forward && o.backward <= best.backward; };
  int64_t spare = -problem.state_bytes;
  for (size_t k = 0; k < tables.size(); ++k) {
    for (const int64_t b : batches[k]) {
      for (const Option& o : tables[k].Ways(b)) {
        if (!within(o)) continue;
        spare += StateLimit(problem, level, tables[k].capacity() - o.bytes);
        break;
      }
    }
  }
  for (size_t k = 0; k < tables.size(); ++k) {
    auto& choices = answer->choices.emplace_back();
    for (const int64_t b : batches[k]) {
      const Option* chosen = nullptr;
      int64_t frugal_state = 0;
      for (const Option& o : tables[k].Ways(b)) {
        if (!within(o)) continue;
        const int64_t state = StateLimit(problem, level, tables[k].capacity() - o.bytes);
        if (chosen == nullptr) frugal_state = state;
        const bool faster = chosen != nullptr && o.forward + o.backward < chosen->forward + chosen->backward;
        if (chosen == nullptr || (faster && frugal_state - state <= spare)) chosen = &o;
      }
      spare -= frugal_state - StateLimit(problem, level, tables[k].capacity() - chosen->bytes);
      choices.push_back({b, chosen->microbatch, chosen->recompute, chosen->forward, chosen->backward, chosen->bytes});
    }
  }
}

}  // namespace

SplitAnswer SolveSplit(const SplitProblem& problem) {
  std::vector<SampleRates> rates;
  for (const SplitKind& kind : problem.kinds) rates.push_back(LeastSecondsPerSample(kind));
  std::vector<int64_t> limits = FirstLimits(problem, rates);
  SplitAnswer answer;
  while (true) {
    std::vector<OptionTable> tables;
    for (size_t k = 0; k < limits.size(); ++k) tables.emplace_back(problem.kinds[k], limits[k]);
    StateKnapsack knapsack(problem, tables);
    const Best best = Search(problem, tables, &knapsack);
    // Nothing beats the floors of the cheapest collectives.
    const SkewLevel& floor = problem.levels.front();
    const bool at_floor = best.seconds <= floor.forward_seconds + floor.backward_seconds;
    bool complete = true;
    for (size_t k = 0; k < limits.size() && !at_floor; ++k) {
      const int64_t needed = UsefulLimit(problem, rates[k], best.seconds);
      if (limits[k] >= needed) continue;
      complete = false;
      limits[k] = best.seconds < kInfinity ? needed : std::min(needed, 2 * limits[k]);
    }
    if (!complete) continue;
    if (best.seconds < kInfinity) {
      answer.feasible = true;
      answer.seconds = best.seconds;
      answer.level = best.level;
      Choose(problem, tables, best, &knapsack, &answer);
    } else {
      const int64_t most = knapsack.MostState(kInfinity, kInfinity, problem.levels.back());
      answer.missing_bytes = most < 0 ? 0 : problem.state_bytes - most;
    }
    return answer;
  }
}

}  // namespace motley::planner
