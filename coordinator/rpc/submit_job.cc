#include "coordinator/rpc/submit_job.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/job_id.h"
#include "common/base/job_uid.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/adopt_file.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/model/parameters.h"
#include "common/wire/job.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/inputs.h"
#include "coordinator/rpc/check_spec.h"
#include "coordinator/rpc/job_size.h"
#include "coordinator/rpc/permission.h"
#include "coordinator/rpc/views.h"
#include "coordinator/state/membership.h"
#include "coordinator/store/json.h"

namespace motley::coordinator {
namespace {

absl::Status CheckId(const std::string& id) {
  if (IsJobId(id)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("job_id must be 1 to 63 of a-z, 0-9 and '-', not with '-' first, got ", Quoted(id)));
}

// All that is wrong, one thing a line.
absl::Status CheckRequest(const std::string& id, const JobConfig& config) {
  const absl::Status job_id = CheckId(id), spec = CheckSpec(config);
  std::vector<std::string> problems = ProblemsOfWrittenPaths(config);
  if (problems.empty() && job_id.ok()) return spec;
  for (const absl::Status& status : {job_id, spec}) {
    if (!status.ok()) problems.push_back(std::string(status.message()));
  }
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

Person PersonWhoAsks(const Core& core) {
  Person person{std::nullopt, core.caller.name, core.caller.admin};
  if (core.caller.uid >= 0) person.uid = static_cast<uint32_t>(core.caller.uid);
  return person;
}

// A job's id becomes its checkpoint folder, so that it means the same when that job is deleted. Others may save there, too.
absl::Status ResolveInitial(const Core& core, JobRecord* job) {
  const ClusterState& state = core.state;
  JobConfig* config = &job->config;
  if (!InitialIsJob(config->checkpoint)) return absl::OkStatus();
  const auto other = state.jobs.find(JobId(config->checkpoint.initial));
  if (other == state.jobs.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "checkpoint.initial: job ", Quoted(config->checkpoint.initial),
        " is not known; give a job of `motley list`, or a folder, which has a slash: ./", config->checkpoint.initial));
  }
  const bool on_disks = IsOnNodesDisks(other->second.config.checkpoint);
  if (on_disks && !IsOnNodesDisks(config->checkpoint)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "checkpoint.initial: the checkpoints of job ", config->checkpoint.initial,
        " lie on its nodes' disks, where a job that "
        "keeps its own in a folder does not read them; leave out checkpoint.folder, or export that job and give the folder"));
  }
  // In a folder the rights of files decide; on disks whoever may read them by an export.
  if (on_disks && core.config.owners) {
    const absl::Status may = CheckPermission(state, PersonWhoAsks(core), "/motley.v1.Motley/Carry", config->checkpoint.initial);
    if (!may.ok()) return absl::Status(may.code(), absl::StrCat("checkpoint.initial: ", may.message()));
  }
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape ours, ResolveModel(*config));
  const absl::StatusOr<ModelShape> theirs = ResolveModel(other->second.config);
  if (theirs.ok() && !(*theirs == ours)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "checkpoint.initial: job ", config->checkpoint.initial, " trains another model, with ", NumParameters(*theirs),
        " parameters; this one has ", NumParameters(ours), "; a job's weights come without its [model]: say it here, too"));
  }
  // On disks it is found by id and uid.
  if (!on_disks) config->checkpoint.initial = CheckpointFolder(other->second);
  job->initial_of = OwnerOf(other->second);
  return absl::OkStatus();
}

// What lies on nodes' disks under a job's uid belongs to whoever has the uid.
absl::Status CheckAdopt(const Core& core, const JobRecord& job, const std::string& uid) {
  if (uid.empty()) return absl::OkStatus();
  if (!IsJobUid(uid)) {
    return absl::InvalidArgumentError(
        absl::StrCat("adopt_uid must be 32 of 0-9 and a-f, got ", Quoted(uid), "; motley files lists what lies on the nodes"));
  }
  if (!IsOnNodesDisks(job.config.checkpoint)) {
    return absl::InvalidArgumentError(
        absl::StrCat("adopt_uid is for jobs whose checkpoints lie on their nodes' disks; this one's lie in ",
                     CheckpointFolder(job), ", where a file says whom it adopts: ", AdoptLine(uid, CheckpointFolder(job))));
  }
  for (const auto& [id, other] : core.state.jobs) {
    if (other.uid.value() == uid && id != job.id)
      return absl::FailedPreconditionError(absl::StrCat("uid ", uid, " is that of job ", id.value(), ", which is here"));
  }
  if (core.config.owners && !core.caller.admin) {
    return absl::PermissionDeniedError(
        absl::StrCat("nobody knows whose job uid ", uid, " was; members of group motley-admin may adopt what it left"));
  }
  return absl::OkStatus();
}

absl::StatusOr<JobUid> UidOf(const v1::SubmitJobRequest& request) {
  return request.adopt_uid().empty() ? NewJobUid() : JobUid(request.adopt_uid());
}

bool IsSameJob(const JobRecord& known, const JobRecord& job, const std::string& adopt_uid) {
  return ConfigToJson(known.config) == ConfigToJson(job.config) && (adopt_uid.empty() || known.uid.value() == adopt_uid);
}

}  // namespace

absl::Status SubmitJob(Core& core, const v1::SubmitJobRequest& request, v1::SubmitJobResponse* response) {
  JobRecord job;
  job.id = JobId(request.job_id());
  job.config = wire::FromProto(request.spec());
  job.config.checkpoint = Decided(job.config.checkpoint);
  MOTLEY_RETURN_IF_ERROR(CheckRequest(request.job_id(), job.config));
  MOTLEY_RETURN_IF_ERROR(CheckPlaces(core.state, job.config.planner));
  MOTLEY_RETURN_IF_ERROR(ResolveInitial(core, &job));
  MOTLEY_RETURN_IF_ERROR(CheckAdopt(core, job, request.adopt_uid()));
  if (auto it = core.state.jobs.find(job.id); it != core.state.jobs.end()) {
    if (!IsSameJob(it->second, job, request.adopt_uid())) {
      return absl::AlreadyExistsError(
          absl::StrCat("job_id '", job.id.value(), "' is a job of other settings already; choose another id"));
    }
    *response->mutable_job() = View(core, it->second);
    return absl::OkStatus();
  }
  MOTLEY_RETURN_IF_ERROR(CheckRoomForJob(core.state, job.config, core.config.waiting_job_bytes));
  MOTLEY_RETURN_IF_ERROR(CheckJobsOfAccount(core.state, core.caller, core.config.account_jobs));
  MOTLEY_ASSIGN_OR_RETURN(job.uid, UidOf(request));
  if (!request.adopt_uid().empty()) job.adopted_below = Epoch(kFirstEpochNobodyGives);
  job.submitted_unix_ms = core.journal.UnixMs();
  job.owner_uid = core.caller.uid, job.owner = core.caller.name;
  // A job of this id that the store lost may have left ranks behind.
  if (auto seen = core.state.foreign_epochs.find(job.id); seen != core.state.foreign_epochs.end()) job.epoch = seen->second;
  job.reason = "submitted";
  Batch batch;
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kJobState;
  event.message = request.adopt_uid().empty() ? "submitted"
                                              : absl::StrCat("submitted, to go on from what the lost job of uid ",
                                                             request.adopt_uid(), " left on the nodes' disks");
  batch.jobs.push_back(job);
  batch.events.push_back(std::move(event));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  JobRecord& stored = core.state.jobs[job.id] = std::move(job);
  KeepInputs(core);  // before it gets the cluster
  Drive(core);
  *response->mutable_job() = View(core, stored);
  response->set_created(true);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
