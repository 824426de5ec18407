// Devices that a job waits for, because another set of devices has no plan for it. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// Of the nodes and devices that the job cannot do without (run.named), those that are known and not among the usable ones, each
// with why: "n2 (lost: its connection broke)". Empty: none. A name that was never seen, and what planner.exclude names, is not
// waited for.
std::string NamedAway(const ClusterState& state, const JobRun& run, const std::vector<DeviceDescription>& usable);
// The same of all devices that took part in the job.
std::string PartnersAway(const ClusterState& state, const JobRun& run);

}  // namespace motley::coordinator
