// Whether all ranks' programs, each run in the order of its lanes, come to their end together. Before anything starts.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/program/program.h"

namespace motley::planner {

// `programs` by rank, each has passed Validate. An instruction runs when everything before it on its lane and all of its `after`
// have run; the k-th collective of one rank meets the k-th of all others. FAILED_PRECONDITION: none, collectives that do not
// match, or a deadlock: names every rank and lane that is stuck, its instruction and what it waits for.
absl::Status CheckOrder(const std::vector<Program>& programs);

}  // namespace motley::planner
