#include "planner/split/state_knapsack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace motley::planner {
namespace {

// For the rounding of slopes: one part in 2^40, and a byte.
double Slack(double bytes) { return std::abs(bytes) * 1e-12 + 1; }

}  // namespace

int64_t StateLimit(const SplitProblem& problem, const SkewLevel& level, int64_t free_bytes) {
  const auto share = static_cast<int64_t>(std::ceil(level.largest_share * static_cast<double>(problem.state_bytes)));
  return std::min({free_bytes, share, problem.state_bytes});
}

bool StateKnapsack::Bound(double forward_bound, double backward_bound) {
  int64_t most = 0;
  bool least = true;
  for (OptionTable& table : tables_) {
    const int64_t reach = table.Bound(forward_bound, backward_bound);
    least = least && reach >= problem_.least_batch;
    most += reach * table.count();
  }
  return least && most >= problem_.batch;
}

void StateKnapsack::BuildStaircases(const SkewLevel& level) {
  staircases_.resize(tables_.size());
  for (size_t k = 0; k < tables_.size(); ++k) {
    tables_[k].Staircase(&bytes_);
    std::vector<int64_t>& stairs = staircases_[k];
    stairs.assign(bytes_.size(), -1);
    for (size_t b = static_cast<size_t>(problem_.least_batch); b < stairs.size(); ++b) {
      stairs[b] = StateLimit(problem_, level, tables_[k].capacity() - bytes_[b]);
    }
  }
}

// Upper concave hull of the staircase's points, left to right.
void StateKnapsack::AppendHull(size_t kind) {
  const std::vector<int64_t>& stairs = staircases_[kind];
  const auto slope = [&stairs](int64_t a, int64_t b) {
    return static_cast<double>(stairs[b] - stairs[a]) / static_cast<double>(b - a);
  };
  std::vector<int64_t> hull;
  for (int64_t b = problem_.least_batch; b < static_cast<int64_t>(stairs.size()); ++b) {
    while (hull.size() >= 2 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), b)) hull.pop_back();
    hull.push_back(b);
  }
  for (size_t i = 1; i < hull.size(); ++i) segments_.push_back({slope(hull[i - 1], hull[i]), kind, hull[i - 1], hull[i]});
}

StateKnapsack::Bracket StateKnapsack::FillHulls() {
  Bracket bracket;
  segments_.clear();
  int64_t whole = 0, left = problem_.batch;  // state beside the samples placed so far, by whole segments; samples to place
  for (size_t k = 0; k < tables_.size(); ++k) {
    const int64_t count = tables_[k].count();
    whole += staircases_[k][problem_.least_batch] * count;
    left -= problem_.least_batch * count;
    bracket.batches.emplace_back(static_cast<size_t>(count), problem_.least_batch);
    AppendHull(k);
  }
  std::sort(segments_.begin(), segments_.end(), [](const Segment& a, const Segment& b) {
    return std::tie(b.slope, a.kind, a.begin) < std::tie(a.slope, b.kind, b.begin);
  });
  for (const Segment& s : segments_) {
    const std::vector<int64_t>& stairs = staircases_[s.kind];
    std::vector<int64_t>& batches = bracket.batches[s.kind];
    const int64_t length = s.end - s.begin, rise = stairs[s.end] - stairs[s.begin];
    const int64_t times = std::min<int64_t>(tables_[s.kind].count(), left / length);
    whole += times * rise;
    left -= times * length;
    bracket.slope = s.slope;
    std::fill(batches.begin(), batches.begin() + times, s.end);
    if (times == tables_[s.kind].count()) continue;
    // The remainder goes to one more device of this kind: exactly from below, along the hull from above.
    batches[times] = s.begin + left;
    bracket.upper = static_cast<double>(whole) + s.slope * static_cast<double>(left);
    bracket.lower = whole + stairs[s.begin + left] - stairs[s.begin];
    return bracket;
  }
  bracket.upper = static_cast<double>(whole);
  bracket.lower = left == 0 ? whole : -1;
  return bracket;
}

int64_t StateKnapsack::Exact(const Bracket& bracket, int64_t target, std::vector<std::vector<int64_t>>* batches) {
  // s(b) - slope x b falls short of its kind's greatest by the batch's loss; what all lose together is upper - sum.
  std::vector<std::vector<int64_t>> useful(tables_.size());
  std::vector<double> greatest(tables_.size(), -std::numeric_limits<double>::infinity());
  const double allowed = bracket.upper - static_cast<double>(target) + Slack(bracket.upper);
  int64_t least_left = 0, most_left = 0;  // that the devices to come can process
  for (size_t k = 0; k < tables_.size(); ++k) {
    const auto worth = [&](size_t b) { return static_cast<double>(staircases_[k][b]) - bracket.slope * static_cast<double>(b); };
    const size_t first = static_cast<size_t>(problem_.least_batch);
    for (size_t b = first; b < staircases_[k].size(); ++b) greatest[k] = std::max(greatest[k], worth(b));
    for (size_t b = first; b < staircases_[k].size(); ++b) {
      if (greatest[k] - worth(b) <= allowed) useful[k].push_back(static_cast<int64_t>(b));
    }
    if (useful[k].empty()) return -1;
    least_left += useful[k].front() * tables_[k].count();
    most_left += useful[k].back() * tables_[k].count();
  }
  const size_t size = static_cast<size_t>(problem_.batch) + 1;
  std::vector<int64_t> most(size, -1), next(size, -1);
  std::vector<std::vector<int32_t>> picks;  // by device: batch chosen to reach the column
  most[0] = 0;
  double worth = 0;
  int64_t low = 0, high = 0;  // columns that may be reached
  for (size_t k = 0; k < tables_.size(); ++k) {
    for (int copy = 0; copy < tables_[k].count(); ++copy) {
      least_left -= useful[k].front();
      most_left -= useful[k].back();
      const int64_t next_low = std::max(low + useful[k].front(), problem_.batch - most_left);
      const int64_t next_high = std::min(high + useful[k].back(), problem_.batch - least_left);
      if (next_low > next_high) return -1;
      std::fill(next.begin() + next_low, next.begin() + next_high + 1, -1);
      std::vector<int32_t> pick(batches != nullptr ? size : 0, 0);
      for (int64_t j = low; j <= high; ++j) {
        const int64_t here = most[j];
        if (here < 0 || worth + bracket.slope * static_cast<double>(j) - static_cast<double>(here) > allowed) continue;
        for (const int64_t b : useful[k]) {
          if (j + b < next_low) continue;
          if (j + b > next_high) break;
          const size_t to = static_cast<size_t>(j + b);
          const int64_t state = here + staircases_[k][b];
          if (state <= next[to]) continue;
          next[to] = state;
          if (batches != nullptr) pick[to] = static_cast<int32_t>(b);
        }
      }
      worth += greatest[k];
      most.swap(next);
      low = next_low;
      high = next_high;
      picks.push_back(std::move(pick));
    }
  }
  if (batches == nullptr || most.back() < target) return most.back();
  batches->assign(tables_.size(), {});
  int64_t left = problem_.batch;
  for (size_t k = tables_.size(); k-- > 0;) {
    for (int copy = 0; copy < tables_[k].count(); ++copy) {
      const int32_t b = picks.back()[left];
      picks.pop_back();
      (*batches)[k].push_back(b);
      left -= b;
    }
  }
  return most.back();
}

bool StateKnapsack::Fits(double forward_bound, double backward_bound, const SkewLevel& level) {
  if (!Bound(forward_bound, backward_bound)) return false;
  int64_t full = 0, empty = 0, reach = 0;  // state beside the largest and the least batches
  for (const OptionTable& table : tables_) {
    full += StateLimit(problem_, level, table.capacity() - table.LeastBytes(table.reach())) * table.count();
    empty += StateLimit(problem_, level, table.capacity() - table.LeastBytes(problem_.least_batch)) * table.count();
    reach += table.reach() * table.count();
  }
  if (full >= problem_.state_bytes) return true;
  if (empty < problem_.state_bytes) return false;
  int64_t scaled = 0;  // beside batches in proportion to the largest, rounded up: B or a little more
  for (const OptionTable& table : tables_) {
    const auto part = static_cast<double>(problem_.batch) / static_cast<double>(reach) * static_cast<double>(table.reach());
    const int64_t b = std::clamp(static_cast<int64_t>(part) + 1, problem_.least_batch, table.reach());
    scaled += StateLimit(problem_, level, table.capacity() - table.LeastBytes(b)) * table.count();
  }
  if (scaled >= problem_.state_bytes) return true;
  BuildStaircases(level);
  const Bracket bracket = FillHulls();
  if (bracket.lower >= problem_.state_bytes) return true;
  if (bracket.upper + Slack(bracket.upper) < static_cast<double>(problem_.state_bytes)) return false;
  return Exact(bracket, problem_.state_bytes, nullptr) >= problem_.state_bytes;
}

int64_t StateKnapsack::MostState(double forward_bound, double backward_bound, const SkewLevel& level) {
  if (problem_.least_batch * static_cast<int64_t>(tables_.size()) > problem_.batch || !Bound(forward_bound, backward_bound))
    return -1;
  BuildStaircases(level);
  const Bracket bracket = FillHulls();
  return Exact(bracket, bracket.lower, nullptr);
}

std::vector<std::vector<int64_t>> StateKnapsack::Batches(double forward_bound, double backward_bound, const SkewLevel& level) {
  if (!Bound(forward_bound, backward_bound)) return {};
  BuildStaircases(level);
  Bracket bracket = FillHulls();
  if (bracket.lower < problem_.state_bytes) Exact(bracket, problem_.state_bytes, &bracket.batches);
  EvenOut(&bracket.batches);
  return std::move(bracket.batches);
}

// Equal devices get equal batches, the larger first, where the state still fits; kind by kind.
void StateKnapsack::EvenOut(std::vector<std::vector<int64_t>>* batches) const {
  const auto state_of = [&](size_t k, const std::vector<int64_t>& of_kind) {
    int64_t state = 0;
    for (const int64_t b : of_kind) state += staircases_[k][b];
    return state;
  };
  int64_t spare = -problem_.state_bytes;
  for (size_t k = 0; k < batches->size(); ++k) spare += state_of(k, (*batches)[k]);
  for (size_t k = 0; k < batches->size(); ++k) {
    std::vector<int64_t>& of_kind = (*batches)[k];
    std::sort(of_kind.rbegin(), of_kind.rend());
    int64_t sum = 0;
    for (const int64_t b : of_kind) sum += b;
    const int64_t count = static_cast<int64_t>(of_kind.size());
    std::vector<int64_t> even(of_kind.size(), sum / count);
    for (int64_t i = 0; i < sum % count; ++i) ++even[i];
    const int64_t lost = state_of(k, of_kind) - state_of(k, even);
    if (lost > spare) continue;
    spare -= lost;
    of_kind = std::move(even);
  }
}

}  // namespace motley::planner
