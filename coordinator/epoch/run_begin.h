// A job gets the cluster: what is known of it before its first epoch under this coordinator.
#pragma once

#include "coordinator/core/core.h"

namespace motley::coordinator {

// The run of a job that the queue chose, or that had the cluster when the coordinator ended. It knows whether the job
// has trained, the devices that took part in it before, and those that it cannot do without.
JobRun& BeginRun(Core& core, const JobId& id);

}  // namespace motley::coordinator
