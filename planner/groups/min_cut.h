// The lightest cut of a weighted graph into two sides, every vertex on one of them.
//
// Method: Stoer and Wagner (JACM'97): maximum-adjacency phases, each merging the last two vertices and remembering the cut that
// splits off the last one. O(n^3) time, O(n^2) memory. Ties go to the vertex with the lowest index.
#pragma once

#include <vector>

namespace motley::planner {

// Symmetric, not negative; the diagonal is not read.
using EdgeWeights = std::vector<std::vector<double>>;

struct MinCut {
  double weight = 0;      // of the edges between the sides
  std::vector<int> side;  // the vertices split off, ascending; never empty, never all
};

// Of the graph that `vertices` (distinct, ascending, at least two) span.
MinCut FindMinCut(const EdgeWeights& weights, const std::vector<int>& vertices);

}  // namespace motley::planner
