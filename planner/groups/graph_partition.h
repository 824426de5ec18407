// A graph's vertices in parts of about equal weight with little (or much) weight between the parts: multilevel partition by METIS
// (Karypis and Kumar, SIAM J. Sci. Comput.'98): coarsening by heavy edges, bisection, refinement; bisected again until there are
// enough parts. The one file that includes metis.h.
//
// METIS counts in integers: weights are scaled to 1..1000. The seed is fixed, equal questions have equal answers. METIS keeps its
// random numbers in one place of the process: threads wait for each other.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/groups/split_cut.h"

namespace motley::planner {

struct PartitionQuestion {
  std::vector<int> vertices;           // distinct; indices into the weights
  std::vector<double> vertex_weights;  // of all vertices, by index; positive
  int parts = 1;
  double balance = 1.05;      // heaviest part / average, at least 1: a wish, METIS may not reach it
  bool maximize_cut = false;  // much weight between the parts instead of little
};

// `parts` parts, none empty, ascending inside, by first vertex. INVALID_ARGUMENT: parts outside 1..vertices, weights or
// balance that make no sense. INTERNAL: METIS failed.
absl::StatusOr<Parts> PartitionGraph(const EdgeWeights& weights, const PartitionQuestion& question);

}  // namespace motley::planner
