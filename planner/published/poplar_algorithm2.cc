#include "planner/published/poplar_algorithm2.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/split/poplar_rounds.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

// A kind's peak on its speed curve.
struct Peak {
  double samples_per_second = 0;
  int64_t microbatch = 0;
};
Peak PeakOf(const PoplarTable& table) {
  Peak peak;
  for (size_t m = 1; m < table.size(); ++m) {
    const double speed = static_cast<double>(m) / table[m];
    if (speed >= peak.samples_per_second)
      peak = {speed, static_cast<int64_t>(m)};  // on the plateau the largest: fewest microbatches
  }
  return peak;
}

// Samples by kind, then device: in proportion to the peak speeds rounded down, the rest one by one.
std::vector<std::vector<int64_t>> SplitBySpeed(const PoplarProblem& problem, const std::vector<Peak>& peaks) {
  double cluster_speed = 0;
  for (size_t k = 0; k < peaks.size(); ++k) cluster_speed += problem.kinds[k].count * peaks[k].samples_per_second;
  const double optimal_seconds = static_cast<double>(problem.batch) / cluster_speed;
  std::vector<std::vector<int64_t>> batches;
  int64_t remaining = problem.batch;
  for (size_t k = 0; k < peaks.size(); ++k) {
    // Rounding of the quotient must not give out more than there is.
    const int64_t most = remaining / std::max(1, problem.kinds[k].count);
    const int64_t batch = std::min(most, static_cast<int64_t>(std::floor(optimal_seconds * peaks[k].samples_per_second)));
    batches.emplace_back(static_cast<size_t>(problem.kinds[k].count), batch);
    remaining -= batch * problem.kinds[k].count;
  }
  for (; remaining > 0; --remaining) {
    int64_t* next = nullptr;
    double earliest = kInfinity;
    for (size_t k = 0; k < peaks.size(); ++k) {
      if (peaks[k].microbatch == 0 || batches[k].empty()) continue;
      int64_t& least = *std::min_element(batches[k].begin(), batches[k].end());
      const double end = static_cast<double>(least + 1) / peaks[k].samples_per_second;
      if (end < earliest) {
        earliest = end;
        next = &least;
      }
    }
    ++*next;  // some kind has a peak, or the cluster had no speed
  }
  return batches;
}

// Lines 2-16.
PoplarAnswer PublishedOnce(const PoplarProblem& problem, const PoplarWays& chosen) {
  std::vector<Peak> peaks;
  bool any = false;
  for (const PoplarTable* table : chosen.tables) {
    peaks.push_back(PeakOf(*table));
    any = any || peaks.back().microbatch > 0;
  }
  if (!any) return {};
  const std::vector<std::vector<int64_t>> batches = SplitBySpeed(problem, peaks);
  PoplarAnswer answer;
  answer.feasible = true;
  for (size_t k = 0; k < batches.size(); ++k) {
    answer.shares.emplace_back();
    for (const int64_t batch : batches[k]) {
      PoplarShare share;
      share.way = chosen.ways[k];
      double seconds = 0;
      for (int64_t rest = batch; rest > 0; rest -= share.microbatches.back()) {  // the last is the text's lbs
        share.microbatches.push_back(std::min(rest, peaks[k].microbatch));
        seconds += (*chosen.tables[k])[share.microbatches.back()];
      }
      answer.seconds = std::max(answer.seconds, seconds);
      answer.shares[k].push_back(std::move(share));
    }
  }
  return answer;
}

// Lines 18-29: equal rounds of the best bound t, the last one smaller.
PoplarAnswer PublishedRounds(const PoplarProblem& problem, const PoplarWays& chosen) {
  std::vector<PoplarRound> best;
  double best_seconds = kInfinity;
  const std::vector<double> bounds = RoundBounds(chosen);
  for (const double bound : bounds) {
    const int64_t samples = RoundSamples(problem, chosen, bound);
    const int64_t full = problem.batch / samples, last = problem.batch % samples;
    double seconds = static_cast<double>(full) * RoundSeconds(problem, bound);
    double shortest = 0;
    if (last > 0) {
      shortest =
          *std::partition_point(bounds.begin(), bounds.end(), [&](double t) { return RoundSamples(problem, chosen, t) < last; });
      seconds += RoundSeconds(problem, shortest);
    }
    if (seconds >= best_seconds) continue;
    best_seconds = seconds;
    best.assign(static_cast<size_t>(full), {bound, samples});
    if (last > 0) best.emplace_back(shortest, last);
  }
  return best.empty() ? PoplarAnswer{} : FromRounds(problem, chosen, best);
}

}  // namespace

PoplarAnswer SolvePoplarPublished(const PoplarProblem& given) {
  const PoplarProblem problem = MakeMonotone(given);
  const PoplarWays chosen = ChooseWays(problem, FirstWays(problem));
  return problem.synchronise_rounds ? PublishedRounds(problem, chosen) : PublishedOnce(problem, chosen);
}

}  // namespace motley::planner
