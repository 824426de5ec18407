#include "coordinator/epoch/trial.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "coordinator/epoch/planner_input.h"
#include "coordinator/epoch/planning.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/state/membership.h"
#include "planner/live/job_request.h"
#include "planner/live/planner.h"

namespace motley::coordinator {
namespace {

absl::StatusOr<planner::PlannerInput> TrialInput(Core& core, const std::set<NodeName>& newcomers) {
  const JobRun& run = *core.state.run;
  std::vector<ComputeProfile> fresh;
  for (const NodeName& node : newcomers) {
    const std::optional<ProfileReport>& measured = run.probes.at(node).profile;
    if (measured) fresh.insert(fresh.end(), measured->compute.begin(), measured->compute.end());
  }
  MOTLEY_ASSIGN_OR_RETURN(planner::PlannerInput input,
                          MakePlannerInput(core, core.state.jobs.at(run.job), UsableDevices(core.state, run, newcomers), fresh));
  input.predicts_links = true;
  return input;
}

absl::Status Try(const absl::StatusOr<planner::PlannerInput>& input) {
  MOTLEY_RETURN_IF_ERROR(input.status());
  MOTLEY_RETURN_IF_ERROR(planner::CheckComputeType(input->devices, input->config));
  MOTLEY_RETURN_IF_ERROR(planner::CheckCouldFit(input->devices, input->model, input->config));
  return OnOneLine(planner::MakePlan(*input).status());
}

void EndTrial(Core& core, int64_t ticket, size_t tried, const absl::Status& plan) {
  if (!core.state.run || !core.state.run->trial || core.state.run->trial->ticket != ticket) return;
  JobRun& run = *core.state.run;
  const std::set<NodeName> nodes = std::exchange(run.trial, std::nullopt)->nodes;
  for (const NodeName& node : nodes) {
    auto probe = run.probes.find(node);
    if (probe == run.probes.end()) continue;
    if (plan.ok() || tried == 1) {
      probe->second.plan = plan;
    } else {
      probe->second.alone = true;
    }
  }
  ProbeNewcomers(core);
}

}  // namespace

void BeginTrial(Core& core, const std::set<NodeName>& newcomers) {
  JobRun& run = *core.state.run;
  run.trial = TrialPlan{++core.planning_tickets, newcomers, core.clock.Now()};
  auto plan = std::make_shared<absl::Status>();
  core.executor.RunAside(
      [plan, input = TrialInput(core, newcomers)] { *plan = Try(input); },
      [&core, plan, ticket = run.trial->ticket, tried = newcomers.size()] { EndTrial(core, ticket, tried, *plan); });
}

void LeaveTrial(Core& core, const NodeName& node) {
  JobRun& run = *core.state.run;
  if (run.trial && run.trial->nodes.erase(node) > 0 && run.trial->nodes.empty()) run.trial.reset();
}

}  // namespace motley::coordinator
