// A cluster as a cluster file (docs/use/clusters.md) that ParseCluster reads back: what a live cluster is saved as.
#pragma once

#include <string>

#include "planner/cluster/cluster.h"

namespace motley::planner {

// Every number is written, so that nothing is left to defaults; rates and times come back to within rounding. `cluster` must pass
// Validate.
std::string ToToml(const Cluster& cluster);

}  // namespace motley::planner
