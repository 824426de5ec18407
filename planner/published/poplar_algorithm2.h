// The batch search that Poplar's paper prints (algorithm 2) beside the exact one, as its text means it.
//
// Two repairs of what is printed. In lines 9-10 u_i = (t / p_i) p_i is the constant t, so that "min(u_i)" picks nothing; here the
// remaining samples go one by one to the device that would finish earliest with one more, which minimises the paper's equation 4
// (sum of idle time x speed: with T = max t_i it is T sum p_i - B). In line 23 B need not divide by the round's samples: the last
// round is smaller (the text's lbs), and as short as its samples allow.
#pragma once

#include "planner/split/poplar_problem.h"

namespace motley::planner {

// Uses each kind's first way that fits. Deterministic.
PoplarAnswer SolvePoplarPublished(const PoplarProblem& problem);

}  // namespace motley::planner
