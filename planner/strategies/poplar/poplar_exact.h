// The optimum of Poplar's batch search (poplar_problem.h).
#pragma once

#include "planner/split/poplar_problem.h"

namespace motley::planner {

// Microbatches of any sizes, rounds of different sizes, ways chosen by device (rounds not synchronised) or kind. Exact but for
// the ways of more than four kinds under synchronised rounds, which are improved one kind at a time.
PoplarAnswer SolvePoplarExact(const PoplarProblem& problem);

}  // namespace motley::planner
