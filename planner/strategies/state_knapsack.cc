#include "planner/strategies/state_knapsack.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace motley::planner {

int64_t StateLimit(const SplitProblem& problem, const SkewLevel& level, int64_t free_bytes) {
  const auto share = static_cast<int64_t>(std::ceil(level.largest_share * static_cast<double>(problem.state_bytes)));
  return std::min({free_bytes, share, problem.state_bytes});
}

bool StateKnapsack::BuildStaircases(double forward_bound, double backward_bound, const SkewLevel& level) {
  staircases_.resize(tables_.size());
  int64_t most = 0;
  for (size_t k = 0; k < tables_.size(); ++k) {
    const int64_t largest = tables_[k].LargestBatch(forward_bound, backward_bound);
    staircases_[k].assign(static_cast<size_t>(largest) + 1, -1);
    most += largest * tables_[k].count();
  }
  if (most < problem_.batch) return false;
  most = 0;
  for (size_t k = 0; k < tables_.size(); ++k) {
    std::vector<int64_t>& stairs = staircases_[k];
    for (size_t b = 0; b < stairs.size(); ++b) {
      for (const Option& o : tables_[k].Ways(static_cast<int64_t>(b))) {
        if (o.forward > forward_bound || o.backward > backward_bound) continue;
        stairs[b] = StateLimit(problem_, level, tables_[k].capacity() - o.bytes);
        break;  // the first within the bounds needs the least memory
      }
    }
    while (stairs.back() < 0) stairs.pop_back();
    most += static_cast<int64_t>(stairs.size() - 1) * tables_[k].count();
  }
  return most >= problem_.batch;
}

// Upper concave hull of the staircase's points, left to right.
void StateKnapsack::AppendHull(size_t kind) {
  const std::vector<int64_t>& stairs = staircases_[kind];
  const auto slope = [&stairs](int64_t a, int64_t b) {
    return static_cast<double>(stairs[static_cast<size_t>(b)] - stairs[static_cast<size_t>(a)]) / static_cast<double>(b - a);
  };
  std::vector<int64_t> hull;
  for (int64_t b = 0; b < static_cast<int64_t>(stairs.size()); ++b) {
    if (stairs[static_cast<size_t>(b)] < 0) continue;
    while (hull.size() >= 2 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), b)) hull.pop_back();
    hull.push_back(b);
  }
  for (size_t i = 1; i < hull.size(); ++i) segments_.push_back({slope(hull[i - 1], hull[i]), kind, hull[i - 1], hull[i]});
}

void StateKnapsack::Bracket(double* upper, int64_t* lower) {
  segments_.clear();
  int64_t whole = 0;  // state beside the samples placed so far, by whole segments
  for (size_t k = 0; k < tables_.size(); ++k) {
    whole += staircases_[k][0] * tables_[k].count();
    AppendHull(k);
  }
  std::sort(segments_.begin(), segments_.end(), [](const Segment& a, const Segment& b) {
    return std::tie(b.slope, a.kind, a.begin) < std::tie(a.slope, b.kind, b.begin);
  });
  int64_t left = problem_.batch;
  for (const Segment& s : segments_) {
    const std::vector<int64_t>& stairs = staircases_[s.kind];
    const int64_t length = s.end - s.begin, rise = stairs[static_cast<size_t>(s.end)] - stairs[static_cast<size_t>(s.begin)];
    const int64_t times = std::min<int64_t>(tables_[s.kind].count(), left / length);
    whole += times * rise;
    left -= times * length;
    if (times == tables_[s.kind].count()) continue;
    // The remainder goes to one more device of this kind: exactly from below, along the hull from above.
    *upper = static_cast<double>(whole) + s.slope * static_cast<double>(left);
    const int64_t at = stairs[static_cast<size_t>(s.begin + left)];
    *lower = at < 0 ? -1 : whole + at - stairs[static_cast<size_t>(s.begin)];
    return;
  }
  *upper = static_cast<double>(whole);
  *lower = left == 0 ? whole : -1;
}

int64_t StateKnapsack::Exact(std::vector<std::vector<int64_t>>* batches) {
  const size_t size = static_cast<size_t>(problem_.batch) + 1;
  std::vector<int64_t> most(size, -1), next(size);
  std::vector<std::vector<int32_t>> picks;  // by device: batch chosen to reach the column
  most[0] = 0;
  int64_t reach = 0;
  for (size_t k = 0; k < tables_.size(); ++k) {
    const std::vector<int64_t>& stairs = staircases_[k];
    for (int copy = 0; copy < tables_[k].count(); ++copy) {
      std::fill(next.begin(), next.end(), -1);
      std::vector<int32_t> pick(batches != nullptr ? size : 0, 0);
      const int64_t new_reach = std::min<int64_t>(problem_.batch, reach + static_cast<int64_t>(stairs.size()) - 1);
      for (size_t b = 0; b < stairs.size() && b < size; ++b) {
        if (stairs[b] < 0) continue;
        const size_t last = std::min<size_t>(static_cast<size_t>(reach), size - 1 - b);
        for (size_t j = 0; j <= last; ++j) {
          if (most[j] < 0 || most[j] + stairs[b] <= next[j + b]) continue;
          next[j + b] = most[j] + stairs[b];
          if (batches != nullptr) pick[j + b] = static_cast<int32_t>(b);
        }
      }
      most.swap(next);
      reach = new_reach;
      picks.push_back(std::move(pick));
    }
  }
  if (batches == nullptr || most.back() < 0) return most.back();
  batches->assign(tables_.size(), {});
  int64_t left = problem_.batch;
  for (size_t k = tables_.size(); k-- > 0;) {
    for (int copy = 0; copy < tables_[k].count(); ++copy) {
      const int32_t b = picks.back()[static_cast<size_t>(left)];
      picks.pop_back();
      (*batches)[k].push_back(b);
      left -= b;
    }
    // Equal devices: the larger batch first.
    std::sort((*batches)[k].rbegin(), (*batches)[k].rend());
  }
  return most.back();
}

bool StateKnapsack::Fits(double forward_bound, double backward_bound, const SkewLevel& level) {
  if (!BuildStaircases(forward_bound, backward_bound, level)) return false;
  double upper = 0;
  int64_t lower = -1;
  Bracket(&upper, &lower);
  if (lower >= problem_.state_bytes) return true;
  // One part in 2^40 for the rounding of slopes.
  if (upper + std::abs(upper) * 1e-12 + 1 < static_cast<double>(problem_.state_bytes)) return false;
  return Exact(nullptr) >= problem_.state_bytes;
}

int64_t StateKnapsack::MostState(double forward_bound, double backward_bound, const SkewLevel& level) {
  return BuildStaircases(forward_bound, backward_bound, level) ? Exact(nullptr) : -1;
}

std::vector<std::vector<int64_t>> StateKnapsack::BestBatches(double forward_bound, double backward_bound,
                                                             const SkewLevel& level) {
  std::vector<std::vector<int64_t>> batches;
  if (BuildStaircases(forward_bound, backward_bound, level)) Exact(&batches);
  return batches;
}

}  // namespace motley::planner
