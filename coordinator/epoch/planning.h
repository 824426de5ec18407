// Off the loop: the newest checkpoint that verifies, the plan and its programs. The answer comes back as JobRun::prepared.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

absl::Status BeginPlanning(Core& core);

}  // namespace motley::coordinator
