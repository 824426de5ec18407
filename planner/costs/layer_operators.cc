#include "planner/costs/layer_operators.h"

namespace motley::planner {

std::vector<OpCost> OperatorsOf(const Workload& workload, UnitKind unit) {
  std::vector<OpCost> operators = UnitOperators(workload.model, unit, 1, workload.seq_len, workload.dtype);
  for (OpCost& cost : operators) {
    if (cost.op == Op::kAttention && !workload.causal) cost.forward_flops *= 2, cost.backward_input_flops *= 2;
  }
  return operators;
}

}  // namespace motley::planner
