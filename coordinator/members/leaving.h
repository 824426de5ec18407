// Workers, and the coordinator itself, that were told to end: the running job saves first if that fits the time they have.
#pragma once

#include "common/session/session.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// The node is not used any more, until a new worker of that name says hello.
void OnLeaving(Core& core, const NodeName& node, const LeavingReport& report);

// The coordinator ends within server.stop_seconds. Nothing new is begun; the running epoch saves, or ends at once.
void BeginStop(Core& core);
// After BeginStop: nothing is waited for any more.
bool MayStop(const Core& core);

}  // namespace motley::coordinator
