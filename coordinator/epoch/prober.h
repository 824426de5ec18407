// Looks at newcomers beside the job that trains (state/probe decides), and holds back nodes that come and go (state/flapping).
#pragma once

#include <set>
#include <string>

#include "coordinator/core/core.h"

namespace motley::coordinator {

// Periodic: holds, then probes.
void ProbeNewcomers(Core& core);
// Which nodes must wait before they are used. Also called when a node is admitted, so that it is never used for an instant.
void UpdateHolds(Core& core);

// Reports that carry a check_id; those of a probe that is over are dropped.
void OnProbeStorage(Core& core, const NodeName& node, const StorageReport& report);
void OnProbeReach(Core& core, const NodeName& node, const ReachReport& report);
void OnProbeProfile(Core& core, const NodeName& node, const ProfileReport& report);

// The epoch ended before its first step because of these newcomers: they are refused for a while, with what else comes from their
// addresses, and the job goes on with the others as before.
void RefuseSwapped(Core& core, const std::set<NodeName>& newcomers, const std::string& why);
// The nodes of the epoch that ends have made steps together.
void MarkProven(Core& core);
// A new epoch begins, or the job ends: what the workers keep for a probe's storage check is gone.
void ResetTokens(Core& core);

}  // namespace motley::coordinator
