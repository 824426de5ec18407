// Who is there, who may be used, and who is let in. Pure functions of the state.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/state/cluster.h"

namespace motley::coordinator {

struct LeaseDecision {
  std::vector<std::pair<NodeName, std::string>> expired;  // each with the sentence that says so
  std::string brake;                                      // why others that are silent are not given up yet; empty: none
};
// Sessions that have been silent for longer than `lease`. When more than half of the nodes (and at least two) fall silent at once
// it is rather the network, or this host: they are given a second lease before they are lost.
LeaseDecision DecideLeases(absl::Duration now, const ClusterState& state, absl::Duration lease);

// Whether a worker may enter. INVALID_ARGUMENT: a field of its description; UNIMPLEMENTED: another protocol;
// ALREADY_EXISTS: a living session has this name. A session of the same incarnation is a broken one and may be replaced.
absl::Status CheckAdmission(const ClusterState& state, const NodeDescription& description);

// Whether planner.exclude names the device or its node.
bool IsExcluded(const PlannerSection& planner, const DeviceId& device);
// INVALID_ARGUMENT: planner.exclude or planner.pins name what no known node has; says the nearest. Or a pin is of an excluded
// place. Any name is taken before the first node has joined.
absl::Status CheckPlaces(const ClusterState& state, const PlannerSection& planner);

// Nothing keeps all jobs from it: it is connected, not drained, not held and not about to leave.
bool MayBeUsed(const NodeRecord& node);
// Devices that the job may be planned on, by id: of nodes that are connected, not drained and not held, and not left out or
// excluded; no card that is lost. While newcomers are probed (state/probe), only of nodes that have passed, and of `newcomers`.
// The node is here and lacks data that was sent for the job (epoch/inputs): it is not usable until it has that.
bool LacksInputs(const ClusterState& state, const JobId& job, const NodeName& node);
std::vector<DeviceDescription> UsableDevices(const ClusterState& state, const JobRun& run,
                                             const std::set<NodeName>& newcomers = {});
// All nodes but those that the job looked at in their present life and refused.
std::set<NodeName> NotRefused(const ClusterState& state, const JobRun& run);
std::vector<DeviceId> Ids(const std::vector<DeviceDescription>& devices);
// Why there is no usable device and what helps: names the nodes that are lost, drained or leaving and the devices left out.
std::string WhyNoDevice(const ClusterState& state, const JobRun& run);

// The process of this rank is gone: it said so, or its worker is another one or lost (ranks die with their worker).
bool IsGone(const ClusterState& state, const RankRun& rank);
bool AllGone(const ClusterState& state, const JobRun& run);

// "ready", "probing" (looked at beside the job), "refused" (by the job), "held" (it comes and goes), "leaving" (its worker was
// told to end), "left" (it did end), "draining", "drained", "lost".
std::string NodeStateName(const ClusterState& state, const NodeRecord& node);
// "profiling", "training"; else the state of a node that is not ready; else "lost" (its card), "unused" (by the job that runs) or
// "idle". `job` becomes the job that has it, or empty.
std::string DeviceStateName(const ClusterState& state, const DeviceId& device, JobId* job);

}  // namespace motley::coordinator
