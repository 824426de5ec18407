#include "planner/split/poplar_rounds.h"

#include <algorithm>

namespace motley::planner {
namespace {

// The largest batch within `seconds`; the table is monotone.
int64_t LargestWithin(const PoplarTable& table, double seconds) {
  return table.empty() ? 0 : std::upper_bound(table.begin(), table.end(), seconds) - table.begin() - 1;
}

// Batches of one round by kind, then device: the largest within `bound`, less what is too much, from the device that ends last.
std::vector<std::vector<int64_t>> FillRound(const PoplarProblem& problem, const PoplarWays& chosen, double bound,
                                            int64_t samples) {
  std::vector<std::vector<int64_t>> batches;
  for (size_t k = 0; k < chosen.tables.size(); ++k) {
    batches.emplace_back(static_cast<size_t>(problem.kinds[k].count), LargestWithin(*chosen.tables[k], bound));
  }
  for (int64_t surplus = RoundSamples(problem, chosen, bound) - samples; surplus > 0; --surplus) {
    int64_t* last = nullptr;
    double latest = -1;
    for (size_t k = 0; k < batches.size(); ++k) {
      // Devices of a kind are alike: the first of those with most samples stands for them.
      const auto most = std::max_element(batches[k].begin(), batches[k].end());
      if (most == batches[k].end() || *most == 0) continue;
      const double seconds = (*chosen.tables[k])[*most];
      if (seconds > latest) {
        latest = seconds;
        last = &*most;
      }
    }
    if (last == nullptr) break;
    --*last;
  }
  return batches;
}

double Slowest(const PoplarWays& chosen, const std::vector<std::vector<int64_t>>& batches) {
  double seconds = 0;
  for (size_t k = 0; k < batches.size(); ++k) {
    for (const int64_t b : batches[k]) {
      if (b > 0) seconds = std::max(seconds, (*chosen.tables[k])[b]);
    }
  }
  return seconds;
}

}  // namespace

PoplarProblem MakeMonotone(PoplarProblem problem) {
  for (PoplarKind& kind : problem.kinds) {
    for (PoplarTable& table : kind.ways) {
      for (size_t m = 1; m < table.size(); ++m) table[m] = std::max(table[m], table[m - 1]);
    }
  }
  return problem;
}

PoplarWays ChooseWays(const PoplarProblem& problem, const std::vector<size_t>& ways) {
  PoplarWays chosen;
  chosen.ways = ways;
  for (size_t k = 0; k < ways.size(); ++k) chosen.tables.push_back(&problem.kinds[k].ways[ways[k]]);
  return chosen;
}

std::vector<size_t> FirstWays(const PoplarProblem& problem) {
  std::vector<size_t> ways;
  for (const PoplarKind& kind : problem.kinds) {
    size_t first = 0;
    while (first + 1 < kind.ways.size() && !FitsASample(kind.ways[first])) ++first;
    ways.push_back(first);
  }
  return ways;
}

double RoundSeconds(const PoplarProblem& problem, double t) {
  const double c = problem.round_seconds;
  return problem.overlap * std::max(t, c) + (1 - problem.overlap) * (t + c);
}

std::vector<double> RoundBounds(const PoplarWays& chosen) {
  std::vector<double> bounds;
  for (const PoplarTable* table : chosen.tables) {
    if (FitsASample(*table)) bounds.insert(bounds.end(), table->begin() + 1, table->end());
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return bounds;
}

int64_t RoundSamples(const PoplarProblem& problem, const PoplarWays& chosen, double bound) {
  int64_t sum = 0;
  for (size_t k = 0; k < chosen.tables.size(); ++k) sum += problem.kinds[k].count * LargestWithin(*chosen.tables[k], bound);
  return sum;
}

PoplarAnswer FromRounds(const PoplarProblem& problem, const PoplarWays& chosen, const std::vector<PoplarRound>& rounds) {
  PoplarAnswer answer;
  answer.feasible = true;
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    answer.shares.emplace_back(static_cast<size_t>(problem.kinds[k].count));
    for (PoplarShare& share : answer.shares.back()) share.way = chosen.ways[k];
  }
  for (const auto& [bound, samples] : rounds) {
    const std::vector<std::vector<int64_t>> batches = FillRound(problem, chosen, bound, samples);
    answer.seconds += RoundSeconds(problem, Slowest(chosen, batches));
    for (size_t k = 0; k < batches.size(); ++k) {
      for (size_t d = 0; d < batches[k].size(); ++d) {
        if (batches[k][d] > 0) answer.shares[k][d].microbatches.push_back(batches[k][d]);
      }
    }
  }
  return answer;
}

}  // namespace motley::planner
