// Given bounds F and G on the two passes: how much training state can the devices hold while they process B samples?
//
// Each kind has a staircase s(b): state bytes that a device holds beside b samples, the most over all ways within the bounds.
// Maximise the sum of s over the devices with the sum of b equal to B: a knapsack. Three answers, cheapest first:
//   capacity   sum of largest batches < B: no
//   hulls      the concave hulls filled by steepest slope bound the optimum from above; whole steps plus one remainder
//              bound it from below
//   knapsack   exact, O(devices x B x largest b); only when the bounds disagree about the state's size
#pragma once

#include <cstdint>
#include <vector>

#include "planner/strategies/option_table.h"
#include "planner/strategies/split_problem.h"

namespace motley::planner {

class StateKnapsack {
 public:
  StateKnapsack(const SplitProblem& problem, const std::vector<OptionTable>& tables) : problem_(problem), tables_(tables) {}

  // Whether all samples and all state fit.
  bool Fits(double forward_bound, double backward_bound, const SkewLevel& level);
  // The most state that fits beside all samples; -1 when the samples do not fit.
  int64_t MostState(double forward_bound, double backward_bound, const SkewLevel& level);
  // Batches by kind and device that hold the most state. Only where MostState is not negative.
  std::vector<std::vector<int64_t>> BestBatches(double forward_bound, double backward_bound, const SkewLevel& level);

 private:
  struct Segment {  // of a concave hull: from batch `begin` to batch `end`
    double slope;
    size_t kind;
    int64_t begin, end;
  };

  // Fills staircases_; false when the largest batches do not reach B.
  bool BuildStaircases(double forward_bound, double backward_bound, const SkewLevel& level);
  void AppendHull(size_t kind);
  // Bounds from the hulls.
  void Bracket(double* upper, int64_t* lower);
  int64_t Exact(std::vector<std::vector<int64_t>>* batches);

  const SplitProblem& problem_;
  const std::vector<OptionTable>& tables_;
  std::vector<std::vector<int64_t>> staircases_;  // by kind, by batch; -1 = impossible
  std::vector<Segment> segments_;                 // scratch
};

}  // namespace motley::planner
