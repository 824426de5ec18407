// The first half of an epoch: the nodes look at data and checkpoint folder, and what is not stored is measured.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/session/session.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Takes a new epoch number (durable), then asks every node that was not asked yet: one writes a token first, the others read it.
absl::Status BeginStorageChecks(Core& core, const std::vector<DeviceDescription>& devices, const std::string& reason);
void OnStorageReport(Core& core, const NodeName& node, const StorageReport& report);

// Asks for the profiles that are not stored under their digest; goes to planning when there are none.
absl::Status BeginProfiling(Core& core);
// The collectives take too long: their ranks are told to end, and planning begins without what they measured.
absl::Status GoOnPredicted(Core& core, const std::string& why);
void OnProfileReport(Core& core, const NodeName& node, const ProfileReport& report);

// What a node measured of these devices goes to the store under its digest, with an event.
absl::Status StoreProfiles(Core& core, const NodeName& node, const std::vector<DeviceDescription>& devices,
                           const ProfileReport& report);
// What a newcomer measures alone, beside the job that runs: its devices without a stored profile.
absl::StatusOr<ProfileCommand> ProbeProfile(const Core& core, const NodeName& node, const std::string& check_id);

// The job's configuration as ranks get it.
JobConfig RankConfig(const JobRecord& job);

}  // namespace motley::coordinator
