#include "coordinator/epoch/planner_input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/session/profile.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// Without points: they were not.
absl::StatusOr<CollectiveProfile> MeasuredTogether(const Core& core, const std::vector<DeviceDescription>& devices,
                                                   const ModelShape& model, const Precision& precision) {
  if (devices.size() < 2) return CollectiveProfile();
  auto measured = core.store.FindCollectiveProfile(CollectiveProfileDigest(devices, model, precision.master));
  if (absl::IsNotFound(measured.status())) return CollectiveProfile();
  if (measured.ok()) measured->devices = Ids(devices);
  return measured;
}

}  // namespace

absl::StatusOr<planner::PlannerInput> MakePlannerInput(Core& core, const JobRecord& job,
                                                       const std::vector<DeviceDescription>& devices,
                                                       const std::vector<ComputeProfile>& fresh) {
  planner::PlannerInput input;
  input.cluster_name = absl::StrCat(planner::kClusterOfJob, job.id.value());
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
    const auto measured =
        std::find_if(fresh.begin(), fresh.end(), [&](const ComputeProfile& each) { return each.device == device.id; });
    if (absl::IsNotFound(profile.status()) && measured != fresh.end()) profile = *measured;
    if (absl::IsNotFound(profile.status())) continue;
    MOTLEY_RETURN_IF_ERROR(profile.status());
    profile->device = device.id;
    input.devices.push_back(device);
    input.compute.push_back(*std::move(profile));
  }
  MOTLEY_ASSIGN_OR_RETURN(input.collectives, MeasuredTogether(core, input.devices, input.model, precision));
  if (!input.collectives.points.empty() || !core.state.run || core.state.run->job != job.id) return input;
  input.predicts_links = core.state.run->predicts_collectives;
  MOTLEY_ASSIGN_OR_RETURN(input.measured, MeasuredTogether(core, core.state.run->measured_together, input.model, precision));
  return input;
}

}  // namespace motley::coordinator
