// Which of a layer's operators to run again in the backward pass: the knapsack of Baton's third level. Recomputing an operator
// frees the tensor that it makes and costs its forward time once more; operators that only work together (a projection and the
// rotation of its result) are one item. All choices that are worth anything are a short list: fewer bytes for more seconds.
#pragma once

#include <vector>

#include "planner/costs/costs.h"
#include "planner/plan/op_set.h"

namespace motley::planner {

// Of one layer and one microbatch.
struct RecomputeItem {
  OpSet ops;
  double seconds = 0;      // to run them again
  double saved_bytes = 0;  // that they then do not keep
};
struct RecomputeOption {
  OpSet ops;              // recomputed
  double seconds = 0;     // added to the backward pass
  double kept_bytes = 0;  // by the operators that are not recomputed
};

// Undominated sets of items, ascending seconds and descending kept bytes; the first recomputes only what is free. Exact:
// Nemhauser and Ullmann's list (1969), at most 2^items long, in practice a few dozen. Of equal sets the one with the smaller
// bits.
std::vector<RecomputeOption> RecomputeFrontier(const std::vector<RecomputeItem>& items);

// Operators that free memory, with what must run with them. `share`: of a tensor-parallel rank. `with_reduction` = false leaves
// out the projection behind attention, whose sum needs all ranks of a tensor-parallel unit: they must decide it together.
std::vector<RecomputeItem> RecomputeItems(const Costs& costs, int kind, double samples, double share, bool with_reduction);

// The choices of a rank that recomputes nothing or everything (Setting::RecomputeWays): a frontier like the above.
std::vector<RecomputeOption> FrontierOf(const std::vector<OpSet>& ways, const Costs& costs, int kind, double samples,
                                        double share);

}  // namespace motley::planner
