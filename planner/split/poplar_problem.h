// The batch search of Poplar (WenZheng Zhang et al., "Poplar: Efficient Scaling of Distributed DNN Training on Heterogeneous GPU
// Clusters", algorithm 2) as numbers, free of models and clusters.
//
//   Given:  B samples a step; kinds of devices; by kind the seconds t(m) of forward and backward of one microbatch of m samples,
//           m = 0..mbs (the largest that memory holds).
//   ZeRO 0, 1 (one synchronisation a step): device i computes g_i samples, sum g_i = B, in microbatches of its own.
//           minimise  max_i T_i(g_i),  T_i(g) = least sum of t_i over microbatches that add up to g.
//   ZeRO 2, 3 (a synchronisation after every microbatch): rounds r = 1..R; device i computes b_ir <= mbs_i in round r.
//           minimise  sum_r Round(max_i t_i(b_ir)),  sum over i and r of b_ir = B,
//           Round(t) = t + C where nothing overlaps (the paper); e max(t, C) + (1 - e)(t + C) where a part e of it does.
//
// Symbols: C = seconds of communication in a round, e = overlap efficiency. Two searches answer it, both deterministic and over
// tables that are made monotone first: poplar_exact.h finds the optimum, poplar_algorithm2.h what the paper prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace motley::planner {

struct PoplarKind {
  int count = 1;
  // By microbatch size 0..mbs, entry 0 = 0. Ways to compute that a device may choose between for a whole step (what it keeps,
  // what it recomputes); at least one. An empty table: this way does not fit.
  std::vector<std::vector<double>> ways;
};

struct PoplarProblem {
  int64_t batch = 0;                // B
  bool synchronise_rounds = false;  // ZeRO 2, 3
  double round_seconds = 0;         // C
  double overlap = 0;               // e
  std::vector<PoplarKind> kinds;
};

struct PoplarShare {
  size_t way = 0;                     // into the kind's
  std::vector<int64_t> microbatches;  // descending; by round where rounds are synchronised; empty = no samples
};
struct PoplarAnswer {
  bool feasible = false;
  double seconds = 0;                            // the objective
  std::vector<std::vector<PoplarShare>> shares;  // by kind, then device
};

}  // namespace motley::planner
