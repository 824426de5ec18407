// The first half of an epoch: the nodes look at data and checkpoint folder, and what is not stored is measured.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/core.h"
#include "common/session.h"

namespace motley::coordinator {

// Takes a new epoch number (durable), then asks every node that was not asked yet: one writes a token first, the others read it.
absl::Status BeginStorageChecks(Core& core, const std::vector<DeviceDescription>& devices, const std::string& reason);
void OnStorageReport(Core& core, const NodeName& node, const StorageReport& report);
// The job goes on without this node.
absl::Status LeaveOut(Core& core, const NodeName& node, const std::string& why);

// Asks for the profiles that are not stored under their digest; goes to planning when there are none.
absl::Status BeginProfiling(Core& core);
void OnProfileReport(Core& core, const NodeName& node, const ProfileReport& report);

// The job's configuration as ranks get it.
JobConfig RankConfig(const JobRecord& job);

}  // namespace motley::coordinator
