// A unit's operators as the planner sees them: common/model/operators.h of one sample, with attention as the workload counts it.
#pragma once

#include <vector>

#include "common/model/layer_table.h"
#include "common/model/operators.h"
#include "planner/costs/workload.h"

namespace motley::planner {

// Without `causal` attention counts in full.
std::vector<OpCost> OperatorsOf(const Workload& workload, UnitKind unit);

}  // namespace motley::planner
