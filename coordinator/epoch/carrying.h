// Finds the node from which somebody reads a file of a checkpoint that lies on the nodes' disks, and tells it to carry that.
// docs/inside/local-storage.md
#pragma once

#include <string>

#include "common/session/files.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Asks the nodes, or for an input waits until it is known who lacks it (epoch/inputs); `carry.answer` runs once, on the loop,
// when it is known who has it: that node was told then. Its errors: NOT_FOUND, FAILED_PRECONDITION and INVALID_ARGUMENT, for
// whoever asked.
void BeginCarry(Core& core, const std::string& id, PendingCarry carry);
// The carry of this id is over, however it ended.
void OnCarryOver(Core& core, const std::string& id);
// Whether it is an answer for one of these.
bool OnHoldingsForCarries(Core& core, const NodeName& node, const HoldingsReport& report);
// Periodic: nobody waits longer for a node that does not answer.
void AdvanceCarries(Core& core);

}  // namespace motley::coordinator
