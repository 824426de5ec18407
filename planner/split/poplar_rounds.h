// Synchronised rounds of Poplar's batch search: what both searches that answer it build steps from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/split/poplar_problem.h"

namespace motley::planner {

// Seconds by microbatch size 0..mbs.
using PoplarTable = std::vector<double>;

// More samples never take less time: measured curves may dip by noise, a search must not build on it.
PoplarProblem MakeMonotone(PoplarProblem problem);

inline bool FitsASample(const PoplarTable& table) { return table.size() > 1; }

// One way for each kind. Points into the problem.
struct PoplarWays {
  std::vector<size_t> ways;
  std::vector<const PoplarTable*> tables;
};
PoplarWays ChooseWays(const PoplarProblem& problem, const std::vector<size_t>& ways);
// Each kind's first way in which a sample fits.
std::vector<size_t> FirstWays(const PoplarProblem& problem);

// Seconds of a round whose slowest device computes for t.
double RoundSeconds(const PoplarProblem& problem, double t);
// Values of t worth considering: every time at which some device finishes some batch, ascending.
std::vector<double> RoundBounds(const PoplarWays& chosen);
// What all devices compute within t: the paper's sum over find(g_i, t).
int64_t RoundSamples(const PoplarProblem& problem, const PoplarWays& chosen, double bound);

// A round's bound and samples, at most RoundSamples of it.
using PoplarRound = std::pair<double, int64_t>;
// Bounds descending, so that a device without samples in a round has none in later ones.
PoplarAnswer FromRounds(const PoplarProblem& problem, const PoplarWays& chosen, const std::vector<PoplarRound>& rounds);

}  // namespace motley::planner
