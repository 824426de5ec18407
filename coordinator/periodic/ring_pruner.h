// Finished jobs beyond the newest few lose what is kept of them in memory (and their series in the metrics).
#pragma once

#include "coordinator/core/core.h"

namespace motley::coordinator {

void PruneRings(Core& core);
// What is kept in memory of one job.
void ForgetInMemory(Core& core, const JobId& job);

}  // namespace motley::coordinator
