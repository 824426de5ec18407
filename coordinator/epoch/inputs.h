// Inputs of jobs that were sent (common/job/job_input.h): sees that each node has them whole before a job begins there, from
// other nodes, or from who submitted it. docs/inside/inputs.md
#pragma once

#include <string>

#include "common/session/files.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Periodic, and when a job comes: asks the nodes, tells those that lack an input to bring it, and says in ClusterState who lacks
// which job's.
void KeepInputs(Core& core);
// Whether it is an answer for this.
bool OnHoldingsForInputs(Core& core, const NodeName& node, const HoldingsReport& report);
void OnInputReport(Core& core, const NodeName& node, const FetchReport& report);

// Somebody offers an input. Answered once the nodes have said what they have: with the node that takes it, which was told then;
// ALREADY_EXISTS: a node has it; UNAVAILABLE: no node is here that can keep it, or it comes by another offer; NOT_FOUND: no node
// is left; INVALID_ARGUMENT, FAILED_PRECONDITION: the job reads no such input, or has ended.
void BeginUpload(Core& core, const std::string& id, PendingCarry carry);
void OnUploadOver(Core& core, const std::string& id);

}  // namespace motley::coordinator
