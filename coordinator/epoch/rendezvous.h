// The ranks' meeting place: keys and values of the newest epoch, in memory. A get is answered when the value is there.
// A rank that has set a key of its own has come (RankRun::met).
#pragma once

#include "common/session/session.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

void OnKvSet(Core& core, const KvSetReport& report);
void OnKvGet(Core& core, const NodeName& node, const KvGetReport& report);

}  // namespace motley::coordinator
