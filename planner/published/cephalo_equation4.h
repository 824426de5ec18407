// The optimisation that Cephalo's paper prints (arXiv 2411.01075, section 2.4 eq. 4, algorithm 1) beside the exact solver of its
// equations 2 and 3, to show the difference.
//
//   D(i, j, k) = min over m, l of max(D(i-1, j - l m, k - m), T_i(m, l)),  T = max(Tf, AG') + max(Tb, AG' + RS')
//
// So the maximum over devices is taken of the two passes' sum, where eq. 2 and 3 have a barrier after each pass: a split may look
// equal here that is slower in truth, as fast forwards of one device do not make up for the slow ones of another. AG' and RS' are
// the uneven collectives for a device whose own memory does not hold an even share beside its samples; in truth all are uneven
// then.
//
// Answered here by bisection over T with a knapsack of least memory over batches; the value is that of the
// dynamic program, which takes O(N B^3 log B). Of equal values the one with the most memory left is returned.
// Deviations: the ledger's bytes by (microbatches, size) stand for M(m), a line in the paper, which spares the third dimension k:
// memory is added up in bytes, not in samples. Printed otherwise: algorithm 1 begins with minimumLatency 0, which nothing
// undercuts; infinity is meant. Its m and l run over whole microbatches only: b = l m, no smaller last one, at least one sample.
#pragma once

#include <cstdint>

#include "planner/split/split_problem.h"

namespace motley::planner {

struct Equation4Answer {
  SplitAnswer split;           // its seconds are those of equations 2 and 3: what the split really takes
  double printed_seconds = 0;  // eq. 4's own value of it; never more than `split.seconds` at even shares
};

// `problem->least_batch` is taken as at least 1. Recomputation as the kinds allow it; where both are allowed, each device's
// faster one that fits. Deterministic.
Equation4Answer SolveEquation4(SplitProblem* problem, int64_t largest_microbatch, const ExtendTables& extend);

}  // namespace motley::planner
