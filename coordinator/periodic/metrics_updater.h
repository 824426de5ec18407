// Counts of nodes, devices and jobs by state, and the job gauges that change without a step.
#pragma once

#include "coordinator/core/core.h"

namespace motley::coordinator {

void UpdateMetrics(Core& core);

}  // namespace motley::coordinator
