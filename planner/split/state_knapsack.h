// Given bounds F and G on the two passes: how much training state can the devices hold while they process B samples?
//
// Each kind has a staircase s(b): state bytes that a device holds beside b samples, the most over all ways within the bounds. It
// never rises with b. Maximise the sum of s over the devices with the sum of b equal to B: a knapsack. Answers, cheapest first:
//   capacity   sum of largest batches < B: no
//   ends       enough state beside the largest batches, or beside batches in their proportion: yes; too little beside the least:
//   no hulls      the concave hulls filled by steepest slope bound the optimum from above; whole steps plus one remainder
//              bound it from below
//   knapsack   exact, over the batches whose loss against the hulls' slope does not alone exceed what may be lost
#pragma once

#include <cstdint>
#include <vector>

#include "planner/split/option_table.h"
#include "planner/split/split_problem.h"

namespace motley::planner {

class StateKnapsack {
 public:
  // Both outlive this; the tables' bounds are set here.
  StateKnapsack(const SplitProblem& problem, std::vector<OptionTable>* tables) : problem_(problem), tables_(*tables) {}

  // Whether all samples and all state fit.
  bool Fits(double forward_bound, double backward_bound, const SkewLevel& level);
  // The most state that fits beside all samples; -1 when the samples do not fit.
  int64_t MostState(double forward_bound, double backward_bound, const SkewLevel& level);
  // Batches by kind and device that leave room for all state, even within a kind where they may. Only where it Fits.
  std::vector<std::vector<int64_t>> Batches(double forward_bound, double backward_bound, const SkewLevel& level);

 private:
  struct Segment {  // of a concave hull: from batch `begin` to batch `end`
    double slope;
    size_t kind;
    int64_t begin, end;
  };
  struct Bracket {
    double upper = 0;
    int64_t lower = -1;
    double slope = 0;                           // of the segment at which the batch is used up
    std::vector<std::vector<int64_t>> batches;  // those of `lower`
  };

  // Sets the tables' bounds; false when the largest batches do not reach B, or the least is more than one of them.
  bool Bound(double forward_bound, double backward_bound);
  void BuildStaircases(const SkewLevel& level);
  void AppendHull(size_t kind);
  Bracket FillHulls();
  // The most state if that is at least `target`, else -1; batches receives the way there unless nullptr.
  int64_t Exact(const Bracket& bracket, int64_t target, std::vector<std::vector<int64_t>>* batches);
  void EvenOut(std::vector<std::vector<int64_t>>* batches) const;

  const SplitProblem& problem_;
  std::vector<OptionTable>& tables_;
  std::vector<std::vector<int64_t>> staircases_;  // by kind, by batch; -1 = below the least batch
  std::vector<int64_t> bytes_;                    // scratch
  std::vector<Segment> segments_;                 // scratch
};

}  // namespace motley::planner
