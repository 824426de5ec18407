// A coordinator that starts: jobs, drained nodes and speeds from the store. A job that had the cluster keeps it; its workers
// get a lease's time to come back, and the ranks that they still run are told to end.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

absl::Status Recover(Core& core);

}  // namespace motley::coordinator
