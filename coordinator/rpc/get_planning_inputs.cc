#include "coordinator/rpc/get_planning_inputs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/planner_input.h"
#include "coordinator/epoch/planning_inputs.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/state/membership.h"
#include "planner/live/live_inputs.h"

namespace motley::coordinator {
namespace {

// Without a run of its own a job may use whatever is there.
std::vector<DeviceDescription> DevicesFor(const Core& core, const JobRecord& job, std::string* why_none) {
  JobRun none;
  none.job = job.id;
  const JobRun& run = core.state.run && core.state.run->job == job.id ? *core.state.run : none;
  std::vector<DeviceDescription> devices = UsableDevices(core.state, run);
  if (devices.empty()) *why_none = WhyNoDevice(core.state, run);
  return devices;
}

absl::Status NotMeasured(const JobRecord& job, size_t devices) {
  const std::string what =
      absl::StrCat("none of the devices that are there (", devices, ") was measured for job '", job.id.value(), "'");
  if (IsFinal(job.phase)) {
    return absl::FailedPreconditionError(absl::StrCat(what, ", which has ended (", std::string(JobPhaseName(job.phase)),
                                                      "); submit it again, or give --cluster and --model to plan without it"));
  }
  return absl::FailedPreconditionError(absl::StrCat(what, ", which is ", std::string(JobPhaseName(job.phase)),
                                                    "; devices are measured before a job starts: wait until `motley status ",
                                                    job.id.value(), "` says that it runs"));
}

std::vector<std::string> Unmeasured(const std::vector<DeviceDescription>& devices,
                                    const std::vector<DeviceDescription>& measured) {
  std::vector<std::string> missing;
  for (const DeviceDescription& device : devices) {
    const bool there = std::any_of(measured.begin(), measured.end(), [&](const auto& other) { return other.id == device.id; });
    if (!there) missing.push_back(device.id.value());
  }
  return missing;
}

}  // namespace

absl::Status GetPlanningInputs(Core& core, const v1::GetPlanningInputsRequest& request, v1::GetPlanningInputsResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, request.job_id()));
  std::string why_none;
  const std::vector<DeviceDescription> devices = DevicesFor(core, *job, &why_none);
  if (devices.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("nothing to plan job '", job->id.value(), "' on: ", why_none));
  }
  MOTLEY_ASSIGN_OR_RETURN(const planner::PlannerInput input, MakePlannerInput(core, *job, devices));
  if (input.devices.empty()) return NotMeasured(*job, devices.size());
  MOTLEY_ASSIGN_OR_RETURN(const planner::LiveInputs live, planner::DescribeLive(input));
  MOTLEY_ASSIGN_OR_RETURN(*response, PlanningInputsOf(live, job->config));
  const std::vector<std::string> missing = Unmeasured(devices, input.devices);
  if (!missing.empty()) {
    response->add_warnings(
        absl::StrCat(absl::StrJoin(missing, ", "), ": not measured for job '", job->id.value(), "' yet, so not planned with"));
  }
  return absl::OkStatus();
}

}  // namespace motley::coordinator
