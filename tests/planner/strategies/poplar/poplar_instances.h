// Random small instances of Poplar's batch search and their optimum by brute force, for tests and benchmarks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "planner/split/poplar_problem.h"

namespace motley::planner {

// Least seconds of `samples` on one device, by trying every first microbatch.
inline double BrutePoplarDevice(const std::vector<std::vector<double>>& ways, int64_t samples) {
  double best = samples == 0 ? 0 : std::numeric_limits<double>::infinity();
  for (const std::vector<double>& table : ways) {
    const std::function<double(int64_t)> least = [&](int64_t rest) -> double {
      if (rest == 0) return 0;
      double found = std::numeric_limits<double>::infinity();
      for (int64_t m = 1; m <= rest && m < static_cast<int64_t>(table.size()); ++m) {
        found = std::min(found, table[m] + least(rest - m));
      }
      return found;
    };
    best = std::min(best, least(samples));
  }
  return best;
}

// The kind of each device.
inline std::vector<size_t> PoplarDevices(const PoplarProblem& problem) {
  std::vector<size_t> devices;
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    devices.insert(devices.end(), static_cast<size_t>(problem.kinds[k].count), k);
  }
  return devices;
}

// Every split of the batch over the devices.
inline double BrutePoplarOnce(const PoplarProblem& problem) {
  const std::vector<size_t> devices = PoplarDevices(problem);
  std::function<double(size_t, int64_t)> least = [&](size_t d, int64_t rest) -> double {
    if (d == devices.size()) return rest == 0 ? 0 : std::numeric_limits<double>::infinity();
    double found = std::numeric_limits<double>::infinity();
    for (int64_t b = 0; b <= rest; ++b) {
      const double own = BrutePoplarDevice(problem.kinds[devices[d]].ways, b);
      if (own < found) found = std::min(found, std::max(own, least(d + 1, rest - b)));
    }
    return found;
  };
  return least(0, problem.batch);
}

// Every sequence of rounds, every split of each round, every choice of ways by kind.
inline double BrutePoplarRounds(const PoplarProblem& problem) {
  const std::vector<size_t> devices = PoplarDevices(problem);
  double best = std::numeric_limits<double>::infinity();
  std::vector<size_t> ways(problem.kinds.size(), 0);
  for (;;) {
    std::map<int64_t, double> shortest;  // of a round of so many samples
    std::function<void(size_t, int64_t, double)> split = [&](size_t d, int64_t samples, double t) {
      if (samples > problem.batch) return;
      if (d == devices.size()) {
        const auto [at, is_new] = shortest.emplace(samples, t);
        if (!is_new) at->second = std::min(at->second, t);
        return;
      }
      const std::vector<double>& table = problem.kinds[devices[d]].ways[ways[devices[d]]];
      split(d + 1, samples, t);
      for (size_t b = 1; b < table.size(); ++b) split(d + 1, samples + static_cast<int64_t>(b), std::max(t, table[b]));
    };
    split(0, 0, 0);
    std::vector<double> least(static_cast<size_t>(problem.batch) + 1, std::numeric_limits<double>::infinity());
    least[0] = 0;
    for (int64_t g = 1; g <= problem.batch; ++g) {
      for (const auto& [samples, t] : shortest) {
        if (samples == 0 || samples > g) continue;
        const double c = problem.round_seconds;
        const double round = problem.overlap * std::max(t, c) + (1 - problem.overlap) * (t + c);
        least[g] = std::min(least[g], least[g - samples] + round);
      }
    }
    best = std::min(best, least.back());
    size_t k = 0;
    while (k < ways.size() && ++ways[k] == problem.kinds[k].ways.size()) ways[k++] = 0;
    if (k == ways.size()) return best;
  }
}

// Seconds of the optimum; infinite where the batch does not fit.
inline double PoplarByBruteForce(const PoplarProblem& problem) {
  return problem.synchronise_rounds ? BrutePoplarRounds(problem) : BrutePoplarOnce(problem);
}

inline PoplarProblem RandomPoplarProblem(std::mt19937* random, bool rounds) {
  const auto pick = [&](int low, int high) {
    return static_cast<int>((*random)() % static_cast<unsigned>(high - low + 1)) + low;
  };
  PoplarProblem problem;
  problem.batch = pick(1, 9);
  problem.synchronise_rounds = rounds;
  problem.round_seconds = rounds ? pick(0, 40) * 0.1 : 0;
  problem.overlap = pick(0, 2) * 0.5;
  const int kinds = pick(1, 3);
  for (int k = 0; k < kinds; ++k) {
    PoplarKind kind;
    kind.count = pick(1, 2);
    const int ways = pick(1, 2);
    for (int w = 0; w < ways; ++w) {
      const int largest = pick(0, 4);
      std::vector<double> table;
      if (largest > 0) table.push_back(0);
      for (int m = 1; m <= largest; ++m) table.push_back(table.back() + pick(0, 10) * 0.1 + 0.05);
      kind.ways.push_back(table);
    }
    problem.kinds.push_back(kind);
  }
  return problem;
}

// launch + m / speed.
inline std::vector<double> PoplarLine(double launch, double seconds_a_sample, int64_t largest) {
  std::vector<double> table = {0};
  for (int64_t m = 1; m <= largest; ++m) table.push_back(launch + seconds_a_sample * static_cast<double>(m));
  return table;
}

inline double PoplarSeconds(const std::vector<double>& table, const std::vector<int64_t>& microbatches) {
  double sum = 0;
  for (const int64_t m : microbatches) sum += table[m];
  return sum;
}

inline int64_t SamplesOf(const PoplarAnswer& answer) {
  int64_t sum = 0;
  for (const auto& kind : answer.shares) {
    for (const PoplarShare& share : kind) sum = std::accumulate(share.microbatches.begin(), share.microbatches.end(), sum);
  }
  return sum;
}

// The objective as poplar_problem.h states it, from the answer's microbatches alone. Infinite for a microbatch that does not fit.
inline double PriceOf(const PoplarProblem& problem, const PoplarAnswer& answer) {
  double slowest = 0;
  std::vector<double> rounds;
  for (size_t k = 0; k < answer.shares.size(); ++k) {
    for (const PoplarShare& share : answer.shares[k]) {
      const std::vector<double>& table = problem.kinds[k].ways[share.way];
      rounds.resize(std::max(rounds.size(), share.microbatches.size()), 0);
      for (size_t r = 0; r < share.microbatches.size(); ++r) {
        if (share.microbatches[r] >= static_cast<int64_t>(table.size())) return std::numeric_limits<double>::infinity();
        rounds[r] = std::max(rounds[r], table[share.microbatches[r]]);
      }
      slowest = std::max(slowest, PoplarSeconds(table, share.microbatches));
    }
  }
  if (!problem.synchronise_rounds) return slowest;
  double sum = 0;
  for (const double t : rounds) {
    const double c = problem.round_seconds;
    sum += problem.overlap * std::max(t, c) + (1 - problem.overlap) * (t + c);
  }
  return sum;
}

}  // namespace motley::planner
