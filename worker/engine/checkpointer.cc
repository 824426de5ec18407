#include "worker/engine/checkpointer.h"

#include <unistd.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/adopt_file.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_look.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/local_saver.h"
#include "worker/engine/save_verdict.h"

namespace motley::engine {
namespace {

std::string FileName(int rank) { return absl::StrCat("rank-", rank, ".bin"); }

// What one machine refuses is its own rank's to say: to the others it is a peer that is lost, so that nobody else is blamed.
absl::Status AsSeenBy(const RankAssignment& assignment, absl::Status verdict) {
  const bool of_others =
      FaultOf(verdict) == Fault::kNode && BlamedDeviceOf(verdict) != assignment.devices[assignment.rank].value();
  return of_others ? WithFault(std::move(verdict), Fault::kPeer) : verdict;
}

CheckpointFence MakeFence(const RankAssignment& assignment, int64_t step, RankHost& host) {
  return {.owner = {assignment.job, assignment.job_uid, assignment.owns_unnamed_checkpoints},
          .epoch = assignment.epoch.value(),
          .confirm = [&host, step](const std::string& purpose) { return host.ConfirmEpochIsNewest(step, purpose); }};
}

CheckpointManifest MakeManifest(const RankAssignment& assignment, int64_t step, DType dtype, const LossScale& loss_scale) {
  CheckpointManifest manifest;
  manifest.job = assignment.job.value();
  manifest.job_uid = assignment.job_uid;
  manifest.epoch = assignment.epoch.value();
  manifest.step = step;
  manifest.model = assignment.model;
  manifest.dtype = dtype;
  manifest.seed = assignment.config.training.seed;
  manifest.data_digest = assignment.data_digest;
  manifest.loss_scale = loss_scale.scales() ? loss_scale.scale() : 0;
  manifest.steps_at_loss_scale = loss_scale.steps_at_scale();
  manifest.skipped_steps = loss_scale.skipped_steps();
  return manifest;
}

// By rank 0. What stays would be adopted by the next job of the id; this one is not the worse for it.
void UseUpAdopt(const std::string& root, const CheckpointFence& fence, RankHost& host) {
  const absl::Status used = PutAdoptAside(root, fence);
  if (!used.ok()) host.OnLog(absl::StrCat("remove the file adopt, or the next job of this id adopts, too: ", used.message()));
}

// Rank 0's part, once all ranks have written and seen the token. Returns the published folder.
absl::StatusOr<std::string> Publish(const RankAssignment& assignment, JobBase& base, CheckpointManifest manifest,
                                    const std::vector<std::string>& entries, absl::Duration patience,
                                    const std::string& temporary, RankHost& host, int64_t* bytes) {
  const int64_t step = manifest.step;
  for (const std::string& entry : entries) {
    MOTLEY_ASSIGN_OR_RETURN(CheckpointFile file, FileOf(entry));
    *bytes += file.bytes;
    manifest.files.push_back(std::move(file));
  }
  MOTLEY_RETURN_IF_ERROR(NotAllSeen(FilesNotSeen(temporary, manifest.files, patience), assignment.devices, temporary));
  MOTLEY_RETURN_IF_ERROR(RemoveToken(temporary));
  const CheckpointFence fence = MakeFence(assignment, step, host);
  const CheckpointSection& config = assignment.config.checkpoint;
  MOTLEY_ASSIGN_OR_RETURN(manifest.base, base.KeepOrSay(config.folder, manifest.epoch, manifest.job_uid,
                                                        [&](const std::string& text) { host.OnLog(text); }));
  MOTLEY_ASSIGN_OR_RETURN(const std::string folder, PublishCheckpoint(config.folder, manifest, fence));
  const std::set<std::string> spared(assignment.spared_checkpoints.begin(), assignment.spared_checkpoints.end());
  const absl::Status pruned = PruneCheckpoints(config.folder, config.keep_latest_k, step, fence, spared);
  if (!pruned.ok()) host.OnLog(absl::StrCat("old checkpoints stay: ", pruned.message()));
  UseUpAdopt(config.folder, fence, host);
  return folder;
}

// Every rank's part: its file beside rank 0's token. What it has to say of both.
std::string WriteAndLook(const RankAssignment& assignment, const ShardedState& state, int64_t step, DType dtype,
                         absl::Duration patience, const std::string& temporary) {
  std::string token;
  absl::Status token_written;
  if (assignment.rank == 0) {
    token = absl::StrCat(assignment.epoch.value(), "-", step, "-", MonotonicNs());
    token_written = WriteToken(temporary, token);  // first of all, so that nobody waits for it
  }
  const auto written = WriteCheckpointFile(temporary, FileName(assignment.rank), dtype, state.Pieces());
  // Where neither can be written the file's error says more: how much there was to write, and how much is free.
  if (written.ok() && !token_written.ok()) return EntryMessage(token_written, "");
  if (written.ok() && assignment.rank != 0) token = ReadToken(temporary, patience);
  return EntryMessage(written, token);
}

// After a failure, by rank 0: what was written and will not be published.
void Forget(const std::string& temporary, RankHost& host) {
  const absl::Status removed = RemoveTree(temporary);
  if (!removed.ok()) host.OnLog(absl::StrCat("an unfinished checkpoint stays: ", removed.message()));
}

// The same by another rank, where rank 0 does not see what it wrote: a disk that a share was mounted on would fill. What is not
// there, or not empty, stays so.
void ForgetOwnFile(const RankAssignment& assignment, const std::string& temporary) {
  (void)::unlink(absl::StrCat(temporary, "/", FileName(assignment.rank)).c_str());
  (void)::rmdir(temporary.c_str());
}

// All ranks' part. Nobody goes on before rank 0 has published or removed what was written.
absl::Status WriteAndPublish(const RankAssignment& assignment, const ShardedState& state, int64_t step, absl::Duration patience,
                             const std::string& temporary, Communicator& communicator, RankHost& host) {
  const int64_t begin_ns = MonotonicNs();
  const std::string& root = assignment.config.checkpoint.folder;
  MOTLEY_ASSIGN_OR_RETURN(const DType dtype, ParseDType(assignment.config.training.dtype));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                          communicator.GatherStrings(WriteAndLook(assignment, state, step, dtype, patience, temporary)));
  const absl::Status all_written = VerdictOf(entries, assignment.devices, root);
  absl::StatusOr<std::string> published = std::string();  // the folder
  if (!all_written.ok() && assignment.rank != 0 && !LiesWithRank0(entries, assignment.rank)) ForgetOwnFile(assignment, temporary);
  if (assignment.rank == 0) {
    int64_t bytes = 0;
    if (all_written.ok()) {
      published = Publish(assignment, state.base(), MakeManifest(assignment, step, dtype, state.loss_scale()), entries, patience,
                          temporary, host, &bytes);
    }
    if (all_written.ok() && published.ok()) {
      host.OnCheckpoint(step, *published, bytes, (MonotonicNs() - begin_ns) * 1e-9);
    } else {
      Forget(temporary, host);
    }
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> verdicts,
                          communicator.GatherStrings(VerdictMessage(published.status())));
  MOTLEY_RETURN_IF_ERROR(all_written);
  return ErrorOf(verdicts[0], assignment.devices[0]);
}

}  // namespace

absl::Status SaveCheckpoint(const RankAssignment& assignment, const ShardedState& state, int64_t step, absl::Duration patience,
                            Communicator& communicator, RankHost& host) {
  if (!state.whole()) {
    return absl::InternalError(absl::StrCat("the state after step ", step, " is not saved: the step did not come to its end"));
  }
  if (IsOnNodesDisks(assignment.config.checkpoint)) {
    MOTLEY_ASSIGN_OR_RETURN(const DType dtype, ParseDType(assignment.config.training.dtype));
    const LocalSave save{assignment, state, MakeManifest(assignment, step, dtype, state.loss_scale()),
                         MakeFence(assignment, step, host)};
    return AsSeenBy(assignment, SaveOnNodes(save, communicator, host));
  }
  const std::string temporary = absl::StrCat(assignment.config.checkpoint.folder, "/",
                                             TemporaryCheckpointFolderName(step, assignment.epoch.value(), assignment.job_uid));
  const absl::Status verdict = WriteAndPublish(assignment, state, step, patience, temporary, communicator, host);
  // The ranks did not come to a verdict.
  if (FaultOf(verdict) == Fault::kPeer && assignment.rank == 0) Forget(temporary, host);
  return AsSeenBy(assignment, verdict);
}

void RemoveAbandonedCheckpoints(const RankAssignment& assignment, RankHost& host) {
  const std::string& root = assignment.config.checkpoint.folder;
  // On the nodes' disks what has no name may be part of a checkpoint all the same: a save behind it lets it go.
  if (root.empty() || assignment.rank != 0 || IsOnNodesDisks(assignment.config.checkpoint)) return;
  constexpr int64_t kKeepAllPublished = 0;
  const int64_t step = assignment.start_step;
  const CheckpointFence fence = MakeFence(assignment, step, host);
  if (step > 0) UseUpAdopt(root, fence, host);  // else the job has not gone on from anything
  const absl::Status pruned = PruneCheckpoints(root, kKeepAllPublished, step, fence);
  if (pruned.ok() || absl::IsNotFound(pruned)) return;  // it may not be mounted now: the first save says so
  host.OnLog(absl::StrCat("unfinished checkpoints stay: ", pruned.message()));
}

}  // namespace motley::engine
