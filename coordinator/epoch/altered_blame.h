// Nodes between which messages of ranks are altered on the way, again and again: the third time without a checkpoint between the
// job goes on without one of them. docs/use/errors.md, "The table".
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "coordinator/state/run.h"

namespace motley::coordinator {

// An epoch ends by this failure. Nobody knows at which end of a way it happens: whoever has most of them is left out.
void BlameForAltered(Core& core, const Failure& failure);

// After a restart, of the job that goes on: counts again from its events, as far back as these are kept.
absl::Status RecountAltered(Core& core);

// A new worker is another chance for its node. After a restart of the coordinator the one of the newest epoch is no new one.
void ForgetAltered(JobRun& run, const NodeDescription& node);

}  // namespace motley::coordinator
