// Off the loop: the newest checkpoint that verifies, the plan and its programs. The answer comes back as JobRun::prepared.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

absl::Status BeginPlanning(Core& core);
// The process ends, or the folder hangs: the planning that runs is none that takes the coordinator with it.
void PardonPlanning(Core& core);
// The planner's list of what does not fit as a sentence: reasons and events are lines.
absl::Status OnOneLine(const absl::Status& status);

}  // namespace motley::coordinator
