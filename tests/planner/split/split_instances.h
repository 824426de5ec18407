// Random small instances of the split problem and their optimum by brute force, for tests and benchmarks.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "planner/split/split_problem.h"

namespace motley::planner {

// Straight lines with a launch overhead, or arbitrary tables that never fall: the solver may assume no other shape.
inline SplitKind RandomKind(std::mt19937_64& random, int64_t batch, bool integers) {
  const auto real = [&](double low, double high) {
    return integers ? static_cast<double>(std::uniform_int_distribution<int>(1, 6)(random))
                    : std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto bytes = [&](int high) { return std::uniform_int_distribution<int64_t>(0, high)(random); };
  SplitKind kind;
  kind.count = std::uniform_int_distribution<int>(1, 2)(random);
  kind.capacity_bytes = bytes(60);
  const int recompute = std::uniform_int_distribution<int>(0, 5)(random);
  kind.allow_keep = recompute != 0;
  kind.allow_recompute = recompute != 1;
  const size_t size = static_cast<size_t>(batch) + 1;
  kind.forward_seconds.assign(size, 0);
  kind.backward_seconds.assign(size, 0);
  kind.recompute_seconds.assign(size, 0);
  const double launch = real(0, 2), rate = real(0.1, 3);
  const bool wild = std::uniform_int_distribution<int>(0, 2)(random) == 0;
  const auto rise = [&] { return random() % 3 == 0 ? 0 : real(0.1, 3); };
  for (size_t m = 1; m < size; ++m) {
    kind.forward_seconds[m] = wild ? kind.forward_seconds[m - 1] + rise() : launch + rate * static_cast<double>(m);
    kind.backward_seconds[m] = wild ? kind.backward_seconds[m - 1] + rise() : 2 * kind.forward_seconds[m];
    kind.recompute_seconds[m] = kind.forward_seconds[m] + kind.backward_seconds[m];
  }
  for (auto* terms : {&kind.keep_terms, &kind.recompute_terms}) {
    terms->resize(2);
    const int scale = terms == &kind.keep_terms ? 10 : 3;
    for (MemoryTerm& term : *terms) {
      const int64_t slope = bytes(scale), once = bytes(scale);
      term.each.assign(size, 0);
      term.once.assign(size, 0);
      for (size_t m = 1; m < size; ++m) {
        term.each[m] = wild ? term.each[m - 1] + bytes(2 * scale) : slope * static_cast<int64_t>(m);
        term.once[m] = once * static_cast<int64_t>(m);
      }
    }
  }
  if (random() % 4 == 0) kind.in_flight = 1 + static_cast<int64_t>(random() % 3);
  if (random() % 4 == 0) {
    for (int64_t m = 1; m <= batch; m *= 2) kind.sizes.push_back(m);
  }
  return kind;
}

inline SplitProblem RandomProblem(std::mt19937_64& random) {
  SplitProblem problem;
  problem.batch = std::uniform_int_distribution<int64_t>(1, 7)(random);
  problem.state_bytes = std::uniform_int_distribution<int64_t>(0, 80)(random);
  const bool integers = std::uniform_int_distribution<int>(0, 2)(random) == 0;
  const int kinds = std::uniform_int_distribution<int>(1, 3)(random);
  int devices = 0;
  for (int k = 0; k < kinds; ++k) {
    problem.kinds.push_back(RandomKind(random, problem.batch, integers));
    if (devices + problem.kinds.back().count > 4) problem.kinds.back().count = 1;
    devices += problem.kinds.back().count;
  }
  const double floor = std::uniform_real_distribution<double>(0, 6)(random) * (random() % 2);
  for (const double share : {1.0 / devices, 0.7, 1.0}) {
    if (!problem.levels.empty() && share <= problem.levels.back().largest_share) continue;
    const double more = 1 + 0.3 * static_cast<double>(problem.levels.size());
    problem.levels.push_back({share, floor * more, 1.7 * floor * more});
  }
  problem.least_batch = random() % 4 == 0 ? 1 : 0;
  return problem;
}

// Sizes of microbatches that a kind may use.
inline std::vector<int64_t> SizesOf(const SplitKind& kind) {
  std::vector<int64_t> sizes = kind.sizes;
  for (int64_t m = 1; sizes.empty() || (kind.sizes.empty() && m <= kind.largest_size()); ++m) sizes.push_back(m);
  return sizes;
}

// The microbatches as a plan lists them, and the ledger's definition over that list: each microbatch beside the others in flight.
inline int64_t BytesOfList(const SplitKind& kind, bool recompute, int64_t batch, int64_t microbatch) {
  int64_t peak = 0;
  for (const MemoryTerm& term : recompute ? kind.recompute_terms : kind.keep_terms) {
    int64_t sum = 0, in_flight = 0, largest = 0;
    for (int64_t left = batch; left > 0; left -= microbatch) {
      const size_t m = static_cast<size_t>(std::min(left, microbatch));
      if (in_flight++ < kind.in_flight) sum += term.each[m];
      largest = std::max(largest, term.once[m]);
    }
    peak = std::max(peak, sum + largest);
  }
  return peak;
}

inline double SecondsOfList(const std::vector<double>& seconds, int64_t batch, int64_t microbatch) {
  return static_cast<double>(batch / microbatch) * seconds[microbatch] + seconds[batch % microbatch];
}

// Every split of the batch, every microbatch, every policy.
class BruteForce {
 public:
  explicit BruteForce(const SplitProblem& problem) : problem_(problem) {
    for (const SplitKind& kind : problem.kinds) {
      for (int i = 0; i < kind.count; ++i) devices_.push_back(&kind);
      std::vector<std::vector<SplitChoice>>& ways = ways_[&kind];
      for (int64_t b = 0; b <= problem.batch; ++b) ways.push_back(b == 0 ? std::vector<SplitChoice>() : WaysOf(kind, b));
    }
  }
  double Solve() {
    for (level_ = 0; level_ < problem_.levels.size(); ++level_) Place(0, problem_.batch, 0, 0, 0);
    return best_;
  }

 private:
  static std::vector<SplitChoice> WaysOf(const SplitKind& kind, int64_t b) {
    std::vector<SplitChoice> ways;
    for (const int64_t m : SizesOf(kind)) {
      for (const bool recompute : {false, true}) {
        const int64_t bytes = BytesOfList(kind, recompute, b, m);
        if (!(recompute ? kind.allow_recompute : kind.allow_keep) || bytes > kind.capacity_bytes) continue;
        ways.push_back({b, m, recompute, SecondsOfList(kind.forward_seconds, b, m),
                        SecondsOfList(recompute ? kind.recompute_seconds : kind.backward_seconds, b, m), bytes});
      }
    }
    return ways;
  }

  void Place(size_t device, int64_t left, double forward, double backward, int64_t state) {
    const SkewLevel& level = problem_.levels[level_];
    // What is no better already cannot become so: still every split that matters.
    if (std::max(forward, level.forward_seconds) + std::max(backward, level.backward_seconds) >= best_) return;
    if (device == devices_.size()) {
      if (left > 0 || state < problem_.state_bytes) return;
      best_ = std::max(forward, level.forward_seconds) + std::max(backward, level.backward_seconds);
      return;
    }
    const SplitKind& kind = *devices_[device];
    if (problem_.least_batch == 0)
      Place(device + 1, left, forward, backward, state + StateLimit(problem_, level, kind.capacity_bytes));
    for (int64_t b = 1; b <= left; ++b) {
      for (const SplitChoice& way : ways_[&kind][b]) {
        Place(device + 1, left - b, std::max(forward, way.forward_seconds), std::max(backward, way.backward_seconds),
              state + StateLimit(problem_, level, kind.capacity_bytes - way.bytes));
      }
    }
  }

  const SplitProblem& problem_;
  std::vector<const SplitKind*> devices_;
  std::map<const SplitKind*, std::vector<std::vector<SplitChoice>>> ways_;  // by batch
  size_t level_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace motley::planner
