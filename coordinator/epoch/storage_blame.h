// A node that does not see checkpoint.folder as the others do: after three times in a row that it was to blame the job goes on
// without it. docs/use/errors.md, "The table".
#pragma once

#include "common/session/session.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// A save failed. The ranks know whose node is to blame, or nobody does; attempts at one save count once. The third time ends the
// epoch: what was trained since the newest checkpoint cannot be saved with that node.
void BlameForSave(Core& core, const CheckpointFailedReport& report);

// An epoch ends before its first step by this failure. Where one rank of three nodes or more cannot read the checkpoint that the
// coordinator has just found, its node is to blame.
void BlameForRestore(Core& core, const Failure& failure);

}  // namespace motley::coordinator
