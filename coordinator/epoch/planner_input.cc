#include "coordinator/epoch/planner_input.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/session/profile.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {

absl::StatusOr<planner::PlannerInput> MakePlannerInput(Core& core, const JobRecord& job,
                                                       const std::vector<DeviceDescription>& devices) {
  planner::PlannerInput input;
  input.cluster_name = absl::StrCat("cluster-of-", job.id.value());
  input.config = job.config;
  input.epoch = job.epoch;
  MOTLEY_ASSIGN_OR_RETURN(input.model, ResolveModel(job.config));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(job.config.training));
  for (const auto& [name, node] : core.state.nodes) {
    for (const DeviceDescription& device : node.description.devices) {
      if (node.connected && IsExcluded(job.config.planner, device.id)) input.excluded.push_back(device.id);
    }
  }
  for (const DeviceDescription& device : devices) {
    auto profile =
        core.store.FindComputeProfile(ComputeProfileDigest(device, input.model, job.config.training.seq_len, precision.compute));
    if (absl::IsNotFound(profile.status())) continue;
    MOTLEY_RETURN_IF_ERROR(profile.status());
    profile->device = device.id;
    input.devices.push_back(device);
    input.compute.push_back(*std::move(profile));
  }
  if (input.devices.size() < 2) return input;
  auto collectives = core.store.FindCollectiveProfile(CollectiveProfileDigest(input.devices, input.model, precision.master));
  if (absl::IsNotFound(collectives.status())) return input;
  MOTLEY_RETURN_IF_ERROR(collectives.status());
  collectives->devices = Ids(input.devices);
  input.collectives = *std::move(collectives);
  return input;
}

}  // namespace motley::coordinator
