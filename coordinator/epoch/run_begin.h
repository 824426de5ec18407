// A job gets the cluster: what is known of it before its first epoch under this coordinator.
#pragma once

#include "coordinator/core/core.h"

namespace motley::coordinator {

// The run of a job that the queue chose, or that had the cluster when the coordinator ended. It knows whether the job
// has trained, the devices that took part in it before, and those that it cannot do without. One that was put aside goes on.
JobRun& BeginRun(Core& core, const JobId& id);

// The job that has the cluster waits for devices and lends it: its run is kept, but for what nodes were asked beside it.
void PutAside(Core& core);
// A job that waited for devices when the coordinator ended, and had lent the cluster or not.
void PutAsideAgain(Core& core, const JobId& id);
// What a run that begins after a restart is told of it.
void TellOfRestart(const Core& core, JobRun& run);

}  // namespace motley::coordinator
