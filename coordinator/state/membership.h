// Who is there, who may be used, and who is let in. Pure functions of the state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// Sessions that have been silent for longer than `lease`, each with the sentence that says so.
std::vector<std::pair<NodeName, std::string>> ExpiredLeases(absl::Duration now, const ClusterState& state, absl::Duration lease);

// Whether a worker may enter. INVALID_ARGUMENT: a field of its description; FAILED_PRECONDITION: another version;
// ALREADY_EXISTS: a living session has this name. A session of the same incarnation is a broken one and may be replaced.
absl::Status CheckAdmission(const ClusterState& state, const NodeDescription& description);

// Devices that the job may be planned on, by id: of nodes that are connected and not drained, and not left out.
std::vector<DeviceDescription> UsableDevices(const ClusterState& state, const JobRun& run);
std::vector<DeviceId> Ids(const std::vector<DeviceDescription>& devices);
// Why there is no usable device: counts nodes that are lost or drained and devices left out.
std::string WhyNoDevice(const ClusterState& state, const JobRun& run);

// The process of this rank is gone: it said so, or its worker is another one or lost (ranks die with their worker).
bool IsGone(const ClusterState& state, const RankRun& rank);
bool AllGone(const ClusterState& state, const JobRun& run);

// "ready", "draining", "drained", "lost".
std::string NodeStateName(const ClusterState& state, const NodeRecord& node);
// "idle", "profiling", "training", "unused"; `job` becomes the job that has it, or empty.
std::string DeviceStateName(const ClusterState& state, const DeviceId& device, JobId* job);

}  // namespace motley::coordinator
