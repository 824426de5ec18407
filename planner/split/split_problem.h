// The optimisation problem of Cephalo (arXiv 2411.01075, section 2.4, eq. 2-3) as numbers, free of profiles and models.
//
//   minimise   max(max_i Tf_i, AG) + max(max_i Tb_i, AG + RS)
//   subject to sum_i b_i = B; each device's activations fit; all training state fits in what the devices have left.
// Device i chooses batch b_i >= 0, microbatch m_i of the sizes allowed (the last microbatch may be smaller) and recomputation.
//
// Deviations from the paper: its dynamic program adds up per-device latencies with one max over devices (eq. 4); here the two
// passes have a barrier each, as eq. 2-3 say (published/cephalo_equation4.h solves the paper's). Batches of 0 are allowed; the
// last microbatch may be smaller; memory is bytes by (b, m, recompute) with the boundaries of all microbatches, instead of a line
// in m. Collectives cost what was measured at a bound on the largest share (a "skew level"), instead of 15 % more when uneven.
// Symbols: Tf, Tb = forward, backward seconds of a whole pass; F, G = bounds on them; B = batch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace motley::planner {

// A term of a device's peak of activations in closed form. The peak is the largest of
//   sum over microbatches of each(m)  +  once(largest m)
// so that a search can price thousands of splits (option_table.cc adds them up).
struct MemoryTerm {
  std::vector<int64_t> each, once;  // by microbatch size, 0 at size 0
};

// Equal devices. All vectors by microbatch size 0..M for one M of the kind's, entry 0 = 0, never falling: a larger microbatch
// is never faster and never smaller. Seconds are of one microbatch through the whole pass.
struct SplitKind {
  int count = 1;
  int64_t capacity_bytes = 0;                                                // for activations and training state
  std::vector<double> forward_seconds, backward_seconds, recompute_seconds;  // the latter: backward with recomputation
  std::vector<MemoryTerm> keep_terms, recompute_terms;
  bool allow_keep = true, allow_recompute = true;
  // Microbatches whose `each` bytes live at the same time: all of them in the layered schedule, few in 1F1B.
  int64_t in_flight = INT64_MAX;
  std::vector<int64_t> sizes;  // allowed microbatch sizes, ascending; empty = 1..M
  int64_t largest_size() const { return static_cast<int64_t>(forward_seconds.size()) - 1; }
};

// Bytes of activations for `batch` samples in microbatches of `microbatch`.
int64_t ActivationBytes(const SplitKind& kind, bool recompute, int64_t batch, int64_t microbatch);

// What the collectives of a pass cost while no device owns more than `largest_share` of the state.
struct SkewLevel {
  double largest_share = 1;
  double forward_seconds = 0;   // AG
  double backward_seconds = 0;  // AG + RS
};

struct SplitProblem {
  int64_t batch = 0;  // B
  // An answer may be this part of its seconds above the optimum. 0 = exact; then devices whose passes trade off finely can take
  // very long, as all splits along a line of equal sums have to be told apart.
  double tolerance = 0;
  int64_t state_bytes = 0;  // of the whole model
  std::vector<SplitKind> kinds;
  std::vector<SkewLevel> levels;  // ascending largest_share, seconds never falling
  int64_t least_batch = 0;        // of every device
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

// Exact. Deterministic; of equal objectives the first level's.
SplitAnswer SolveSplit(const SplitProblem& problem);

// The same over microbatches up to `largest_microbatch`, with tables that are only made as far as a microbatch can be part of a
// better split: `extend(k, size)` makes the vectors of problem->kinds[k] reach to `size` samples.
using ExtendTables = std::function<void(size_t kind, int64_t size)>;
SplitAnswer SolveSplit(SplitProblem* problem, int64_t largest_microbatch, const ExtendTables& extend);

// State bytes that a device may own when it has `free_bytes` left, under a bound on shares.
int64_t StateLimit(const SplitProblem& problem, const SkewLevel& level, int64_t free_bytes);

}  // namespace motley::planner
