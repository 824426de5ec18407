// A layer's operators as the planner sees them: arithmetic, memory traffic, and what keeping or recomputing each one means.
// From common/model/operators.h, which the engine allocates by; here bytes belong to the operator that *makes* a tensor, because
// recomputing an operator is what frees its output (Baton). Sums over a layer are the same.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/operators.h"
#include "planner/costs/workload.h"
#include "planner/plan/op_set.h"

namespace motley::planner {

struct OperatorWork {
  Op op = Op::kNorm1;
  bool divided = true;         // by tensor parallelism: products and what stands between them; norms and residuals are not
  bool output_divided = true;  // what it keeps, likewise
  double forward_flops = 0, backward_flops = 0;  // of one sample
  double matrix_flops = 0;                       // part of forward_flops that runs on matrix units
  double activation_bytes = 0;                   // read and written forward by one sample
  double weight_bytes = 0;                       // read forward, whatever the samples
  double output_bytes = 0;                       // kept from forward to backward unless the operator is recomputed, of one sample
};

// Flash attention: no score matrix in memory. Without `causal` attention counts in full.
std::vector<OperatorWork> OperatorsOf(const Workload& workload, UnitKind unit);

// Operators that must run again so that the outputs of `ops` exist in the backward pass. The projection of the queries is kept
// after rotation, so recomputing one recomputes the other; a residual's sum needs the product before it.
OpSet RecomputedWith(OpSet ops);

}  // namespace motley::planner
