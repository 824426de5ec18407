// A live cluster and job as planning without one starts from: a cluster, a profile of its own devices, a workload. What
// `motley plan JOB --compare` plans with, and what it saves for a laptop. Pure. docs/offline-planning.md, "On a live cluster".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cluster/cluster.h"
#include "planner/costs/motley_profile.h"
#include "planner/live/planner.h"

namespace motley::planner {

struct LiveInputs {
  Cluster cluster;         // usable_memory is what the job's memory_reserve leaves
  MotleyProfile profile;   // one entry for each card of the cluster
  std::string model_name;  // a key of profile.models
};

// `input` as the live planner gets it, except that `collectives` without points means: these devices were not measured together.
// Then the links are those that the devices declare. Devices of one label whose times lie within 2 % of each other are one card.
// FAILED_PRECONDITION: neither measured nor declared links; INVALID_ARGUMENT: devices and profiles that do not belong together, a
// cluster that does not pass its Validate.
absl::StatusOr<LiveInputs> DescribeLive(const PlannerInput& input, const std::string& name);

}  // namespace motley::planner
