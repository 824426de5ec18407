#include "coordinator/epoch/planning.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/planner_input.h"
#include "coordinator/epoch/resume_point.h"
#include "coordinator/epoch/setup.h"
#include "planner/live/planner.h"

namespace motley::coordinator {
namespace {

absl::StatusOr<planner::PlannerInput> MakeInput(Core& core, const JobRun& run, const JobRecord& job) {
  MOTLEY_ASSIGN_OR_RETURN(planner::PlannerInput input, MakePlannerInput(core, job, run.considered));
  input.epoch = Epoch(job.epoch.value() + (run.started_processes ? 1 : 0));
  for (size_t d = 0; d < run.considered.size(); ++d) {
    if (d < input.devices.size() && input.devices[d].id == run.considered[d].id) continue;
    const DeviceId& device = run.considered[d].id;
    return absl::InternalError(
        absl::StrCat("node ", NodeOf(device).value(), " profiled, but reported nothing for ", device.value()));
  }
  if (run.considered.size() > 1 && input.collectives.points.empty() && !input.predicts_links) {
    return absl::InternalError("the ranks profiled, but none reported the collectives");
  }
  return input;
}

// Runs beside the loop, on values of its own.
Prepared Prepare(planner::PlannerInput input, const CheckpointWish& wish) {
  Prepared prepared;
  if (!wish.folder.empty()) {
    prepared = FindResumePoint(input, wish);
    if (!prepared.status.ok()) return prepared;
    input.epoch = prepared.epoch;
  }
  prepared.epoch = input.epoch;
  absl::StatusOr<planner::PlanResult> result = planner::MakePlan(input);
  prepared.status = OnOneLine(result.status());
  prepared.of_planner = true;
  if (result.ok()) prepared.plan = *std::move(result);
  return prepared;
}

// On disk before the planner begins: should it take the coordinator with it, the next one knows (members/recovery).
absl::Status CountPlanning(Core& core, JobRecord& job) {
  Batch batch;
  batch.jobs.push_back(WithPhase(job, JobPhase::kPlanning, "looking for the newest checkpoint and planning"));
  ++batch.jobs[0].plannings_begun;
  if (job.phase != JobPhase::kPlanning) batch.events.push_back(PhaseEvent(job, batch.jobs[0]));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  job = batch.jobs[0];
  return absl::OkStatus();
}

// The planner came back. The next commit of the job says so; a coordinator that ends has none.
void ForgetPlanning(Core& core, const JobId& id) {
  auto job = core.state.jobs.find(id);
  if (job == core.state.jobs.end() || job->second.plannings_begun == 0) return;
  job->second.plannings_begun = 0;
  if (!core.stopping) return;
  Batch batch;
  batch.jobs.push_back(job->second);
  if (absl::Status status = core.journal.Commit(batch); !status.ok()) LogError(std::string(status.message()));
}

}  // namespace

absl::Status OnOneLine(const absl::Status& status) {
  return {status.code(), absl::StrReplaceAll(status.message(), {{":\n  ", ": "}, {"\n  ", "; "}, {"\n", "; "}})};
}

absl::Status BeginPlanning(Core& core) {
  JobRun& run = *core.state.run;
  JobRecord& job = core.state.jobs.at(run.job);
  MOTLEY_RETURN_IF_ERROR(CountPlanning(core, job));
  run.stage = Stage::kPlanning;
  run.stage_since = core.clock.Now();
  run.prepared.reset();
  run.planning_ticket = ++core.planning_tickets;
  absl::StatusOr<planner::PlannerInput> input = MakeInput(core, run, job);
  if (!input.ok()) {
    run.prepared.emplace();
    run.prepared->status = input.status();
    job.plannings_begun = 0;
    return absl::OkStatus();
  }
  if (!input->collectives.points.empty()) run.measured_together = run.considered;
  auto prepared = std::make_shared<Prepared>();
  core.executor.Run(
      [prepared, input = *std::move(input),
       wish = CheckpointWish{CheckpointFolder(job), OwnerOf(job), job.newest_checkpoint, job.data_digest, run.damaged,
                             job.started_unix_ms == 0}] { *prepared = Prepare(input, wish); },
      [&core, prepared, ticket = run.planning_ticket, id = job.id] {
        ForgetPlanning(core, id);
        // The set of devices may have changed meanwhile, or the job ended.
        if (!core.state.run || core.state.run->planning_ticket != ticket || core.state.run->stage != Stage::kPlanning) return;
        core.state.run->prepared = std::move(*prepared);
        Drive(core);
      });
  return absl::OkStatus();
}

}  // namespace motley::coordinator
