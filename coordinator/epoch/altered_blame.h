// Nodes between which messages of ranks are altered on the way, again and again: the third time without a checkpoint between the
// job goes on without one of them. docs/use/errors.md, "The table".
#pragma once

#include "coordinator/core/core.h"
#include "coordinator/state/run.h"

namespace motley::coordinator {

// An epoch ends by this failure. Nobody knows at which end of a way it happens: whoever has most of them is left out.
void BlameForAltered(Core& core, const Failure& failure);

}  // namespace motley::coordinator
