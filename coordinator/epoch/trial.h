// A plan with newcomers beside the job that trains, made and thrown away: whether there is one at all.
#pragma once

#include <set>

#include "common/base/ids.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Begins one, beside the planning of the job and what it measured; its answer becomes Probe::plan, and the prober goes on. A
// trial that is still under way is not waited for any more.
void BeginTrial(Core& core, const std::set<NodeName>& newcomers);
// The node's probe is over, or begins anew: its trial says nothing of it.
void LeaveTrial(Core& core, const NodeName& node);

}  // namespace motley::coordinator
