// What a device holds beside tensors, as its rank measured it before the first step, against what the plan counted.
#pragma once

#include <cstdint>

#include "coordinator/core/core.h"

namespace motley::coordinator {

// A rank that is ready says that it is more: the device's profile is corrected and the job is planned again, once for a number
// (state/context_watch). An event says both numbers. Of the epoch that runs.
void OnContext(Core& core, const RankRun& rank, int64_t measured_bytes);

}  // namespace motley::coordinator
