#include "coordinator/epoch/planning.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/model/parameters.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/planner_input.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/state/awaited.h"
#include "coordinator/state/decide.h"
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

// A checkpoint of another model, data or seed in the job's own folder was put there by hand: training on would be wrong.
absl::Status CheckFits(const CheckpointManifest& manifest, const planner::PlannerInput& input, const std::string& digest,
                       const std::string& folder) {
  if (!(manifest.model == input.model))
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " is of another model"));
  if (manifest.data_digest != digest)
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " was trained on other data"));
  if (manifest.seed != input.config.training.seed)
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " has another seed"));
  return absl::OkStatus();
}

// A checkpoint folder belongs to the job that made it. Whoever copies it for another job says so: a file `adopt` in that job's
// folder holds the name of the job that made the checkpoints.
absl::Status CheckOwner(const CheckpointManifest& manifest, const JobId& job, const std::string& root,
                        const std::string& folder) {
  constexpr int64_t kMostBytes = 4096;
  if (manifest.job == job.value()) return absl::OkStatus();
  const std::string path = absl::StrCat(root, "/adopt");
  absl::StatusOr<std::string> adopted = ReadSmallFile(path, kMostBytes);
  if (adopted.ok() && absl::StripAsciiWhitespace(*adopted) == manifest.job) return absl::OkStatus();
  if (!adopted.ok() && !absl::IsNotFound(adopted.status())) return adopted.status();
  return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " was made by job ", Quoted(manifest.job),
                                                    "; to begin with it, write that name into ", path,
                                                    ", or give checkpoint.folder as another folder"));
}

// Above an epoch that wrote in the job's folder: a store that is new, or was restored, begins below it, and ranks leave alone
// what a newer epoch wrote. The number comes from a file, so one that nobody gives is not followed.
Epoch Above(Epoch epoch, int64_t other) { return other < kFirstEpochNobodyGives ? std::max(epoch, Epoch(other + 1)) : epoch; }

// Above those of all names, whatever is under them: what the epoch publishes has a name of its own then.
Epoch AboveNames(Epoch epoch, const std::string& root) {
  const auto folders = ListCheckpointFolders(root);
  for (size_t i = 0; folders.ok() && i < folders->size(); ++i) epoch = Above(epoch, (*folders)[i].epoch);
  return epoch;
}

// The job begins: with the weights of another one, where that is asked for.
absl::Status PrepareInitial(const planner::PlannerInput& input, const std::set<std::string>& damaged, Prepared* prepared) {
  const std::string& folder = input.config.checkpoint.initial;
  if (folder.empty()) return absl::OkStatus();
  absl::StatusOr<FoundCheckpoint> found = FindCheckpointAt(folder, damaged);
  if (!found.ok() && FaultOf(found.status()) == Fault::kStorage) return found.status();  // another time, perhaps
  if (!found.ok()) {
    return absl::Status(found.status().code(), absl::StrCat("checkpoint.initial: ", std::string(found.status().message())));
  }
  const CheckpointManifest& manifest = found->manifest;
  if (!(manifest.model == input.model)) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint.initial ", found->folder, " is of another model, with ",
                                                      NumParameters(manifest.model), " parameters; the job's has ",
                                                      NumParameters(input.model)));
  }
  MOTLEY_ASSIGN_OR_RETURN(const DType dtype, ParseDType(input.config.training.dtype));
  if (manifest.dtype != dtype) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint.initial ", found->folder, " holds ",
                                                      std::string(DTypeName(manifest.dtype)), ", training.dtype is ",
                                                      input.config.training.dtype));
  }
  prepared->initial = true;
  prepared->resume_from = found->folder;
  for (const CheckpointFile& file : manifest.files) prepared->resume_bytes += file.bytes;
  prepared->skipped = std::move(found->skipped);
  return absl::OkStatus();
}

// A new job that finds its last step done would succeed without having made one: the steps are an earlier job's of its id.
absl::Status CheckStepsAreLeft(const CheckpointManifest& manifest, int64_t steps, const std::string& folder) {
  if (manifest.step < steps) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("checkpoint ", folder, " is at step ", manifest.step, " and training.steps is ", steps,
                   ": no step is left to make. It was made by an earlier job ", Quoted(manifest.job),
                   "; give more steps, or submit "
                   "the job under another name or with another checkpoint.folder"));
}

struct CheckpointWish {
  std::string folder;     // of the job; empty: none
  std::string published;  // the newest checkpoint that a rank reported, or empty
  std::string data_digest;
  std::set<std::string> damaged;
  JobId job;
  bool is_new = false;  // it has never started a rank
  bool tries_without_small = false;
};

// The devices of least memory without which there is a plan; none: there is no plan without such devices either. For a trial
// their collectives are as good as those that were measured with them.
std::vector<DeviceId> TooSmall(planner::PlannerInput input) {
  constexpr int kMostSizes = 8;  // each is a whole search
  std::vector<DeviceId> small;
  if (!input.collectives.points.empty()) input.measured = std::exchange(input.collectives, CollectiveProfile());
  input.predicts_links = true;
  for (int size = 0; size < kMostSizes; ++size) {
    int64_t least = 0;  // those without a limit have none
    for (const DeviceDescription& device : input.devices) {
      if (device.memory_bytes > 0 && (least == 0 || device.memory_bytes < least)) least = device.memory_bytes;
    }
    if (least == 0) return {};
    for (size_t d = input.devices.size(); d-- > 0;) {
      if (input.devices[d].memory_bytes != least) continue;
      small.push_back(input.devices[d].id);
      input.devices.erase(input.devices.begin() + static_cast<std::ptrdiff_t>(d));
      input.compute.erase(input.compute.begin() + static_cast<std::ptrdiff_t>(d));
    }
    if (input.devices.empty()) return {};
    if (planner::MakePlan(input).ok()) return small;
  }
  return {};
}

// Beside the loop, on values of its own: whose folder does not answer never comes back.
Prepared Look(const planner::PlannerInput& input, const CheckpointWish& wish) {
  Prepared prepared;
  prepared.epoch = input.epoch;
  if (!wish.folder.empty()) {
    // What somebody copied into the folder must not end a job that has checkpoints of its own there.
    const auto ours = [&](const CheckpointManifest& manifest, const std::string& folder) -> absl::Status {
      MOTLEY_RETURN_IF_ERROR(CheckOwner(manifest, wish.job, wish.folder, folder));
      return CheckFits(manifest, input, wish.data_digest, folder);
    };
    prepared.epoch = AboveNames(prepared.epoch, wish.folder);
    std::vector<std::string> not_one;
    auto found = FindNewestCheckpoint(wish.folder, wish.damaged, ours, &not_one);
    if (found.ok()) {
      prepared.resume_from = found->folder;
      prepared.start_step = found->manifest.step;
      prepared.epoch = Above(prepared.epoch, found->manifest.epoch);  // an older build's name has none
      for (const CheckpointFile& file : found->manifest.files) prepared.resume_bytes += file.bytes;
      prepared.skipped = found->skipped;
      prepared.unjudged = found->unjudged;
      if (wish.is_new) prepared.status = CheckStepsAreLeft(found->manifest, input.config.training.steps, found->folder);
    } else if (absl::IsNotFound(found.status()) && !wish.published.empty()) {
      // Beginning again at step 0 would throw away what the ranks saved.
      // A folder that is not mounted looks empty, too.
      prepared.status = WithFault(absl::FailedPreconditionError(absl::StrCat(
                                      std::string(found.status().message()), ", but ", wish.published,
                                      " was published; the coordinator must see checkpoint.folder as the workers do")),
                                  Fault::kStorage);
    } else if (absl::IsNotFound(found.status())) {
      prepared.status = PrepareInitial(input, wish.damaged, &prepared);
      prepared.skipped.insert(prepared.skipped.begin(), not_one.begin(), not_one.end());
    } else {
      prepared.status = found.status();
    }
  }
  return prepared;
}

// Beside the loop, too.
void PlanFrom(planner::PlannerInput input, bool tries_without_small, Prepared* prepared) {
  input.epoch = prepared->epoch;
  absl::StatusOr<planner::PlanResult> result = planner::MakePlan(input);
  prepared->status = OnOneLine(result.status());
  prepared->of_planner = true;
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

struct PlanningTask {
  JobId job;
  int64_t ticket = 0;
  CheckpointWish wish;
  planner::PlannerInput input;
  Prepared prepared;
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
  core.executor.Run([task] { PlanFrom(std::move(task->input), task->wish.tries_without_small, &task->prepared); },
                    [&core, task] { Answer(core, *task); });
}

// On a thread of its own, which nobody waits for: a share that does not answer holds up no other job, and not the process's end.
// One at a time for each folder, or each planning of its job would leave a thread behind; the newest one has its turn then.
void BeginLook(Core& core, const std::shared_ptr<PlanningTask>& task) {
  core.state.run->looking = true;
  const auto [look, is_first] = core.looks.try_emplace(task->wish.folder);
  if (!is_first) {
    look->second = [&core, task] {
      if (IsWaitedFor(core, *task)) BeginLook(core, task);
    };
    return;
  }
  core.executor.RunApart([task] { task->prepared = Look(task->input, task->wish); },
                         [&core, task] {
                           const auto ended = core.looks.extract(task->wish.folder);
                           if (ended.mapped()) ended.mapped()();
                           if (!IsWaitedFor(core, *task)) return ForgetPlanning(core, task->job);
                           core.state.run->looking = false;
                           core.state.run->stage_since = core.clock.Now();
                           task->prepared.status.ok() ? BeginPlan(core, task) : Answer(core, *task);
                         });
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
  task->wish = CheckpointWish{CheckpointFolder(job),
                              job.newest_checkpoint,
                              job.data_digest,
                              run.damaged,
                              job.id,
                              job.started_unix_ms == 0,
                              MayLeaveOutSmall(core.state, run, job)};
  task->input = *std::move(input);
  BeginLook(core, task);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
