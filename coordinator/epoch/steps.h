// Steps and checkpoints as ranks report them.
#pragma once

#include <vector>

#include "common/session/assignment.h"
#include "common/session/session.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Rank 0's report is the step; the others add their memory and lateness. The first step after a replan writes the line that
// says cause, pause, steps repeated and predicted speed.
void OnStep(Core& core, const StepReport& report);
// Steps of a generation that begins are compared with what these say; of none: it is over.
void WatchRanks(Core& core, const std::vector<RankAssignment>& ranks);
void OnCheckpoint(Core& core, const NodeName& node, const CheckpointReport& report);
void OnCheckpointFailed(Core& core, const NodeName& node, const CheckpointFailedReport& report);

}  // namespace motley::coordinator
