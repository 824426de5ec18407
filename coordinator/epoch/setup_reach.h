// Asks the nodes of a set-up whether they reach each other, and leaves those out that do not (state/setup_reach decides which).
#pragma once

#include <set>
#include <string>

#include "common/session/session.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Where a set-up looks at everybody: newcomers of a job that trains are asked by their probes. All are asked again where ranks
// have lost each other twice in a row.
void AskSetupReach(Core& core, const std::set<NodeName>& nodes);
bool IsOfSetup(const std::string& check_id);
void OnSetupReach(Core& core, const NodeName& node, const ReachReport& report);

// The job goes on without the node until it is reached; that is tried again by itself (state/probe).
void LeaveOutOfReach(Core& core, const NodeName& node, const std::string& why);
// Asks a node that is unreached, and those that do not reach it.
void TryReach(Core& core, const NodeName& node);

}  // namespace motley::coordinator
