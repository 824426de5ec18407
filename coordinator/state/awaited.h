// Devices that a job waits for, because another set of devices has no plan for it. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// Of the nodes and devices that the job cannot do without (run.named), those that are not among the usable ones, each with why:
// "n2 (lost: its connection broke)". Empty: none. A name that nobody knows is waited for as well: it was known when the job was
// submitted, or nobody was, and a coordinator that was restarted knows only who came since. What planner.exclude names is not.
std::string NamedAway(const ClusterState& state, const JobRun& run, const std::vector<DeviceDescription>& usable);
// The same of all devices that took part in the job.
std::string PartnersAway(const ClusterState& state, const JobRun& run);

}  // namespace motley::coordinator
