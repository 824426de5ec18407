// Files on the nodes' disks that somebody found damaged: they count for nothing until their node has looked at them, or has
// copied them anew (epoch/copies). docs/inside/local-storage.md
#pragma once

#include <string>

#include "common/session/files.h"
#include "coordinator/core/core.h"
#include "coordinator/state/holdings.h"

namespace motley::coordinator {

// What the node found damaged of the checkpoint, its own or another's: these count for nothing until their node has looked.
void NoteDamagedFiles(Core& core, const NodeName& node, const FetchReport& report, const std::string& checkpoint);
// The same of the checkpoint of another job with whose weights this one begins: they count for nothing for this job.
void NoteDamagedInitial(JobRun& run, const NodeName& node, const FetchReport& report);
// On a node that is here.
bool HasDamagedFiles(const Core& core, const JobId& job, const std::string& checkpoint);
// Nobody holds them.
void LeaveOutDamaged(const Core& core, const JobId& job, Holdings& held);
void LeaveOutDamaged(const DamagedFiles& damaged, Holdings& held);

}  // namespace motley::coordinator
