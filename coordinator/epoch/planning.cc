#include "coordinator/epoch/planning.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/looks.h"
#include "coordinator/epoch/planner_input.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/state/awaited.h"
#include "coordinator/state/decide.h"
#include "planner/live/memory_limits.h"
#include "planner/live/planner.h"
#include "planner/live/ran_out.h"

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

// The devices of least memory without which there is a plan; none: there is no plan without such devices either. For a trial
// their collectives are as good as those that were measured with them.
std::vector<DeviceId> TooSmall(planner::PlannerInput input) {
  constexpr int kMostSizes = 8;  // each is a whole search
  std::vector<int64_t> memory = planner::MemoryLimits(input);
  std::vector<DeviceId> small;
  if (!input.collectives.points.empty()) input.measured = std::exchange(input.collectives, CollectiveProfile());
  input.predicts_links = true;
  for (int size = 0; size < kMostSizes; ++size) {
    int64_t least = 0;  // those without a limit have none
    for (const int64_t bytes : memory) {
      if (bytes > 0 && (least == 0 || bytes < least)) least = bytes;
    }
    if (least == 0) return {};
    for (size_t d = input.devices.size(); d-- > 0;) {
      if (memory[d] != least) continue;
      small.push_back(input.devices[d].id);
      input.devices.erase(input.devices.begin() + static_cast<std::ptrdiff_t>(d));
      input.compute.erase(input.compute.begin() + static_cast<std::ptrdiff_t>(d));
      memory.erase(memory.begin() + static_cast<std::ptrdiff_t>(d));
    }
    if (input.devices.empty()) return {};
    if (planner::MakePlan(input).ok()) return small;
  }
  return {};
}

// Beside the loop, on values of its own.
void PlanFrom(planner::PlannerInput input, bool tries_without_small, Prepared* prepared) {
  input.epoch = prepared->epoch;
  absl::StatusOr<planner::PlanResult> result = planner::MakePlan(input);
  prepared->status = OnOneLine(result.status());
  prepared->of_planner = true;
  const std::string limits = planner::MemoryLimitsText(input);
  if (absl::IsResourceExhausted(prepared->status) && !limits.empty())
    prepared->status = absl::ResourceExhaustedError(absl::StrCat(prepared->status.message(), "; ", limits));
  if (absl::IsResourceExhausted(result.status()) && tries_without_small) prepared->too_small = TooSmall(std::move(input));
  if (result.ok()) prepared->plan = *std::move(result);
}

// Where nobody else is waited for, or to blame, should there be no plan.
bool MayLeaveOutSmall(const ClusterState& state, const JobRun& run, const JobRecord& job) {
  const bool had_plan = run.has_run || job.started_unix_ms > 0;
  return job.config.planner.plan_json.empty() && UnprovenNodes(state, run).empty() &&
         (!had_plan || PartnersAway(state, run).empty());
}

// On disk before the planner begins: should it take the coordinator with it, the next one knows (members/recovery).
absl::Status CountPlanning(Core& core, JobRecord& job) {
  Batch batch;
  batch.jobs.push_back(WithPhase(job, JobPhase::kPlanning, kPlanningReason));
  ++batch.jobs[0].plannings_begun;
  if (job.phase != JobPhase::kPlanning) batch.events.push_back(PhaseEvent(job, batch.jobs[0]));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  job = batch.jobs[0];
  return absl::OkStatus();
}

// The planner came back: the next commit of the job says so.
void ForgetPlanning(Core& core, const JobId& id) {
  if (auto job = core.state.jobs.find(id); job != core.state.jobs.end()) job->second.plannings_begun = 0;
}

struct PlanningTask : LookTask {
  int64_t ticket = 0;
  std::string memory_end;  // JobRun::memory_end: there is no plan to look for, but ways out
  MemoryTier memory_end_tier = MemoryTier::kDevice;
  bool tries_without_small = false;  // where no plan fits
};

// The set of devices may have changed meanwhile, or the job ended.
bool IsWaitedFor(const Core& core, const PlanningTask& task) {
  return core.state.run && core.state.run->planning_ticket == task.ticket && core.state.run->stage == Stage::kPlanning;
}

void Answer(Core& core, PlanningTask& task) {
  ForgetPlanning(core, task.job);
  if (!IsWaitedFor(core, task)) return;
  core.state.run->prepared = std::move(task.prepared);
  Drive(core);
}

void BeginPlan(Core& core, const std::shared_ptr<PlanningTask>& task) {
  core.executor.Run(
      [task] {
        if (task->memory_end.empty()) return PlanFrom(std::move(task->input), task->tries_without_small, &task->prepared);
        task->prepared.status = OnOneLine(planner::RanOut(task->input, task->memory_end, task->memory_end_tier));
      },
      [&core, task] { Answer(core, *task); });
}

void LookAndPlan(Core& core, const std::shared_ptr<PlanningTask>& task) {
  const absl::Status begun = BeginLook(
      core, task,
      [&core, task] {
        if (!IsWaitedFor(core, *task)) {
          ForgetPlanning(core, task->job);
          return TellFolder(core, task->job, task->prepared.status);
        }
        core.state.run->looking = false;
        core.state.run->stage_since = core.clock.Now();
        task->prepared.status.ok() ? BeginPlan(core, task) : Answer(core, *task);
      },
      [&core, task] {
        if (IsWaitedFor(core, *task)) LookAndPlan(core, task);
      });
  core.state.run->looking = begun.ok();
  if (begun.ok()) return;
  ForgetPlanning(core, task->job);
  core.state.run->prepared.emplace().status = begun;
}

}  // namespace

absl::Status OnOneLine(const absl::Status& status) {
  return {status.code(), absl::StrReplaceAll(status.message(), {{":\n  ", ": "}, {"\n  ", "; "}, {"\n", "; "}})};
}

void PardonPlanning(Core& core) {
  if (!core.state.run || core.state.run->stage != Stage::kPlanning) return;
  JobRecord& job = core.state.jobs.at(core.state.run->job);
  if (job.plannings_begun == 0) return;
  job.plannings_begun = 0;
  Batch batch;
  batch.jobs.push_back(job);
  if (absl::Status status = core.journal.Commit(batch); !status.ok()) LogError(std::string(status.message()));
}

absl::Status BeginPlanning(Core& core) {
  JobRun& run = *core.state.run;
  JobRecord& job = core.state.jobs.at(run.job);
  MOTLEY_RETURN_IF_ERROR(CountPlanning(core, job));
  run.stage = Stage::kPlanning;
  run.stage_since = core.clock.Now();
  run.prepared.reset();
  run.looking = false;
  run.planning_ticket = ++core.planning_tickets;
  absl::StatusOr<planner::PlannerInput> input = MakeInput(core, run, job);
  if (!input.ok()) {
    run.prepared.emplace();
    run.prepared->status = input.status();
    job.plannings_begun = 0;
    return absl::OkStatus();
  }
  if (!input->collectives.points.empty()) run.measured_together = run.considered;
  const auto task = std::make_shared<PlanningTask>();
  task->job = job.id;
  task->ticket = run.planning_ticket;
  task->memory_end = run.memory_end;
  task->memory_end_tier = run.memory_end_tier;
  task->tries_without_small = MayLeaveOutSmall(core.state, run, job);
  task->wish = WishOf(run, job);
  task->input = *std::move(input);
  LookAndPlan(core, task);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
