// The optimisation problem of Cephalo (arXiv 2411.01075, section 2.4, eq. 2-3) as numbers, free of profiles and models.
//
//   minimise   max(max_i Tf_i, AG) + max(max_i Tb_i, AG + RS)
//   subject to sum_i b_i = B; each device's activations fit; all training state fits in what the devices have left.
// Device i chooses batch b_i >= 0, microbatch m_i in 1..b_i (the last microbatch may be smaller) and recomputation.
//
// Deviations from the paper: its dynamic program adds up per-device latencies with one max over devices (eq. 4); here the two
// passes have a barrier each, as eq. 2-3 say. Batches of 0 are allowed; the last microbatch may be smaller; memory is bytes by
// (b, m, recompute) with the boundaries of all microbatches, instead of a line in m. Collectives cost what was measured at a
// bound on the largest share (a "skew level"), instead of 15 % more when uneven.
// Symbols: Tf, Tb = forward, backward seconds of a whole pass; F, G = bounds on them; B = batch.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/simulator/memory_ledger.h"

namespace motley::planner {

// Equal devices. All vectors by microbatch size 0..B, entry 0 = 0. Seconds of one microbatch through the whole pass.
struct SplitKind {
  int count = 1;
  int64_t capacity_bytes = 0;                                                // for activations and training state
  std::vector<double> forward_seconds, backward_seconds, recompute_seconds;  // the latter: backward with recomputation
  std::vector<MemoryTerm> keep_terms, recompute_terms;
  bool allow_keep = true, allow_recompute = true;
};

// What the collectives of a pass cost while no device owns more than `largest_share` of the state.
struct SkewLevel {
  double largest_share = 1;
  double forward_seconds = 0;   // AG
  double backward_seconds = 0;  // AG + RS
};

struct SplitProblem {
  int64_t batch = 0;        // B
  int64_t state_bytes = 0;  // of the whole model
  std::vector<SplitKind> kinds;
  std::vector<SkewLevel> levels;  // ascending largest_share
};

struct SplitChoice {
  int64_t batch = 0, microbatch = 0;
  bool recompute = false;
  double forward_seconds = 0, backward_seconds = 0;
  int64_t bytes = 0;  // activations
};

struct SplitAnswer {
  bool feasible = false;
  double seconds = 0;                             // the objective
  size_t level = 0;                               // into the problem's levels
  std::vector<std::vector<SplitChoice>> choices;  // by kind, then device
  // When not feasible: bytes missing for the training state with the most frugal split; 0 when not even the batch fits.
  int64_t missing_bytes = 0;
};

// Exact. Deterministic: of equal objectives the first level, then the smallest forward bound.
SplitAnswer SolveSplit(const SplitProblem& problem);

// State bytes that a device may own when it has `free_bytes` left, under a bound on shares.
int64_t StateLimit(const SplitProblem& problem, const SkewLevel& level, int64_t free_bytes);

}  // namespace motley::planner
