#include "coordinator/rpc/delete_job.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/job_uid.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/disk_looks.h"
#include "coordinator/periodic/retention.h"
#include "coordinator/rpc/find_job.h"

namespace motley::coordinator {
namespace {

// That ever had ranks of it: one that was not here since the start is not known otherwise.
absl::StatusOr<std::set<NodeName>> NodesOfJob(Core& core, const JobId& job) {
  MOTLEY_ASSIGN_OR_RETURN(const std::set<DeviceId> devices, core.store.DevicesOf(job));
  std::set<NodeName> nodes;
  for (const DeviceId& device : devices) nodes.insert(NodeOf(device));
  return nodes;
}

void SayWhoIsAway(const Core& core, const Batch& batch, v1::DeleteJobResponse* response) {
  for (const UnwantedRow& row : batch.unwanted) {
    const auto node = core.state.nodes.find(row.node);
    if (node == core.state.nodes.end() || !node->second.connected) response->add_later(row.node.value());
  }
}

// What jobs of this id left that were deleted before; with a uid, that one.
absl::Status DeleteFilesOfUnknown(Core& core, const JobId& job, const JobUid& uid, v1::DeleteJobResponse* response) {
  MOTLEY_RETURN_IF_ERROR(CheckName("job_id", job.value()));
  if (!uid.empty() && !IsJobUid(uid.value()))
    return absl::InvalidArgumentError(absl::StrCat("job_uid ", Quoted(uid.value()), " is no uid"));
  if (core.config.owners && !core.caller.admin) {
    return absl::PermissionDeniedError(absl::StrCat("job ", Quoted(job.value()),
                                                    " is not known any more, so nobody knows whose its files are; members of "
                                                    "group motley-admin may delete them"));
  }
  Batch batch;
  AddUnwanted(core, job, uid, {}, batch);
  SayWhoIsAway(core, batch, response);
  return Forget(core, {},
                absl::StrCat("what jobs of id ", job.value(), uid.empty() ? "" : " and uid ", uid.value(),
                             " left on the nodes' disks is deleted"),
                std::move(batch));
}

std::string WhatStays(const JobRecord& job, bool files, const std::string& folder, const std::string& adopt) {
  if (files) return "with what it saved on the nodes' disks";
  if (IsOnNodesDisks(job.config.checkpoint)) {
    return absl::StrCat("what it saved, in ", job.id.value(), ".", job.uid.value(), ", stays on the nodes' disks");
  }
  return folder.empty() ? "which had no checkpoint" : absl::StrCat("its checkpoints, of uid ", adopt, ", stay in ", folder);
}

}  // namespace

absl::Status DeleteJob(Core& core, const v1::DeleteJobRequest& request, v1::DeleteJobResponse* response) {
  const absl::StatusOr<const JobRecord*> found = FindJob(core, request.job_id());
  const JobUid uid(request.job_uid());
  const bool another = absl::IsNotFound(found.status()) || (found.ok() && !uid.empty() && (*found)->uid != uid);
  if (another && request.files()) return DeleteFilesOfUnknown(core, JobId(request.job_id()), uid, response);
  MOTLEY_RETURN_IF_ERROR(found.status());
  const JobRecord& job = **found;
  if (!IsFinal(job.phase)) {
    return absl::FailedPreconditionError(absl::StrCat("job ", job.id.value(), " has not ended, it is ",
                                                      std::string(JobPhaseName(job.phase)), "; stop it first: motley stop ",
                                                      job.id.value()));
  }
  // One that has made a step may have written a checkpoint whose word was lost.
  const bool never_wrote = job.newest_checkpoint.empty() && job.step == 0;
  const std::string folder = never_wrote ? "" : CheckpointFolder(job), adopt = folder.empty() ? "" : AdoptText(job);
  Batch batch;
  if (request.files()) {
    if (!IsOnNodesDisks(job.config.checkpoint)) {
      return absl::FailedPreconditionError(absl::StrCat("job ", job.id.value(), " keeps its checkpoints in ",
                                                        CheckpointFolder(job),
                                                        ", where others may write, too; delete it without its files, and that "
                                                        "folder by hand"));
    }
    MOTLEY_ASSIGN_OR_RETURN(const std::set<NodeName> nodes, NodesOfJob(core, job.id));
    AddUnwanted(core, job.id, job.uid, nodes, batch);
    SayWhoIsAway(core, batch, response);
  }
  const std::string message =
      absl::StrCat("job ", job.id.value(), " was deleted, ", WhatStays(job, request.files(), folder, adopt));
  MOTLEY_RETURN_IF_ERROR(Forget(core, {job.id}, message, std::move(batch)));
  response->set_checkpoint_folder(folder);
  response->set_adopt(adopt);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
