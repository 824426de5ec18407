// What workers say, applied to the state. Reports of another job or an older epoch are dropped.
#pragma once

#include "common/session/session.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Then drives the job: a report may be what a decision waited for.
void HandleReport(Core& core, const NodeName& node, const WorkerReport& report);

}  // namespace motley::coordinator
