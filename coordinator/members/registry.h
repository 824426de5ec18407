// Workers coming, going, drained and undrained.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// About a node, or without a name about who may be one.
EventRecord NodeEvent(const char* kind, const NodeName& node, std::string message);

// Lets a worker in, or says why not (CheckCaller's and CheckAdmission's errors). Ranks of older epochs that still live on the
// node are told to end.
absl::Status Admit(Core& core, const NodeDescription& description, std::shared_ptr<WorkerLink> link);

// A worker that was not let in: kept for people (CheckCluster), the newest of each name.
void NoteRefused(Core& core, const std::string& name, const absl::Status& why);

// The session of `node` is over, or is ended because of `why`. The running epoch counts the node as lost: what its ranks
// said meanwhile cannot be known. Idempotent.
void Disconnect(Core& core, const NodeName& node, const std::string& why);

// NOT_FOUND: no such node. Durable when it returns; the epoch driver moves running jobs off the node.
absl::Status SetDrained(Core& core, const NodeName& node, bool drained);

}  // namespace motley::coordinator
