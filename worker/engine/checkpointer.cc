#include "worker/engine/checkpointer.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "worker/engine/base/monotonic.h"

namespace motley::engine {
namespace {

// A rank's contribution or failure as text: "ok <entry>" or "error <code> <fault> <message>".
std::string ErrorMessage(const absl::Status& status) {
  return absl::StrCat("error ", static_cast<int>(status.code()), " ", std::string(FaultName(FaultOf(status))), " ",
                      status.message());
}
std::string ToMessage(const absl::StatusOr<CheckpointFile>& file) {
  return file.ok() ? absl::StrCat("ok ", FileEntryToJson(*file)) : ErrorMessage(file.status());
}
std::string ToMessage(const absl::Status& status) { return status.ok() ? "ok" : ErrorMessage(status); }

absl::Status ErrorOf(const std::string& message, const DeviceId& device) {
  if (message.rfind("error ", 0) != 0) return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(message, absl::MaxSplits(' ', 3));
  if (parts.size() != 4) return absl::InternalError(absl::StrCat("checkpoint on ", device.value(), ": ", message));
  return WithFault(absl::Status(static_cast<absl::StatusCode>(std::atoi(parts[1].c_str())),
                                absl::StrCat("checkpoint on ", device.value(), ": ", parts[3])),
                   ParseFault(parts[2]).value_or(Fault::kOurs));
}

// What one machine refuses is its own rank's to say: to the others it is a peer that is lost, so that nobody else is blamed.
absl::Status FirstError(const std::vector<std::string>& messages, const RankAssignment& assignment) {
  for (size_t r = 0; r < messages.size(); ++r) {
    absl::Status error = ErrorOf(messages[r], assignment.devices[r]);
    const bool of_others = FaultOf(error) == Fault::kNode && static_cast<int>(r) != assignment.rank;
    if (!error.ok()) return of_others ? WithFault(std::move(error), Fault::kPeer) : error;
  }
  return absl::OkStatus();
}

CheckpointFence MakeFence(const RankAssignment& assignment, int64_t step, RankHost& host) {
  return {.epoch = assignment.epoch.value(),
          .confirm = [&host, step](const std::string& purpose) { return host.ConfirmEpochIsNewest(step, purpose); }};
}

CheckpointManifest MakeManifest(const RankAssignment& assignment, int64_t step, DType dtype, const LossScale& loss_scale) {
  CheckpointManifest manifest;
  manifest.job = assignment.job.value();
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

// Rank 0's part.
absl::Status Publish(const RankAssignment& assignment, CheckpointManifest manifest, const std::vector<std::string>& messages,
                     const std::string& temporary, const std::string& final_folder, RankHost& host, int64_t* bytes) {
  const int64_t step = manifest.step;
  for (const std::string& message : messages) {
    MOTLEY_ASSIGN_OR_RETURN(CheckpointFile file, FileEntryFromJson(message.substr(3)));
    *bytes += file.bytes;
    manifest.files.push_back(std::move(file));
  }
  const CheckpointFence fence = MakeFence(assignment, step, host);
  MOTLEY_RETURN_IF_ERROR(PublishCheckpoint(temporary, final_folder, manifest, fence));
  const CheckpointSection& config = assignment.config.checkpoint;
  const std::set<std::string> spared(assignment.spared_checkpoints.begin(), assignment.spared_checkpoints.end());
  const absl::Status pruned = PruneCheckpoints(config.folder, config.keep_latest_k, step, fence, spared);
  if (!pruned.ok()) host.OnLog(absl::StrCat("old checkpoints stay: ", pruned.message()));
  return absl::OkStatus();
}

// After a failure, by rank 0: what was written and will not be published.
void Forget(const RankAssignment& assignment, int64_t step, const std::string& temporary, RankHost& host) {
  const absl::Status removed = RemoveTemporaryCheckpoint(temporary, MakeFence(assignment, step, host));
  if (!removed.ok()) host.OnLog(absl::StrCat("an unfinished checkpoint stays: ", removed.message()));
}

// All ranks' part. Nobody goes on before rank 0 has published or removed what was written.
absl::Status WriteAndPublish(const RankAssignment& assignment, const ShardedState& state, int64_t step,
                             const std::string& temporary, Communicator& communicator, RankHost& host) {
  const int64_t begin_ns = MonotonicNs();
  const std::string& root = assignment.config.checkpoint.folder;
  const std::string final_folder = absl::StrCat(root, "/", CheckpointFolderName(step));
  MOTLEY_ASSIGN_OR_RETURN(const DType dtype, ParseDType(assignment.config.training.dtype));
  const auto written = WriteCheckpointFile(temporary, absl::StrCat("rank-", assignment.rank, ".bin"), dtype, state.Pieces());
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> entries, communicator.GatherStrings(ToMessage(written)));
  const absl::Status all_written = FirstError(entries, assignment);
  absl::Status published;
  if (assignment.rank == 0) {
    int64_t bytes = 0;
    if (all_written.ok()) {
      published = Publish(assignment, MakeManifest(assignment, step, dtype, state.loss_scale()), entries, temporary, final_folder,
                          host, &bytes);
    }
    if (!all_written.ok() || !published.ok()) Forget(assignment, step, temporary, host);
    if (all_written.ok() && published.ok()) host.OnCheckpoint(step, final_folder, bytes, (MonotonicNs() - begin_ns) * 1e-9);
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> verdicts, communicator.GatherStrings(ToMessage(published)));
  MOTLEY_RETURN_IF_ERROR(all_written);
  return FirstError(verdicts, assignment);
}

}  // namespace

absl::Status SaveCheckpoint(const RankAssignment& assignment, const ShardedState& state, int64_t step, Communicator& communicator,
                            RankHost& host) {
  const std::string temporary =
      absl::StrCat(assignment.config.checkpoint.folder, "/", TemporaryCheckpointFolderName(step, assignment.epoch.value()));
  const absl::Status verdict = WriteAndPublish(assignment, state, step, temporary, communicator, host);
  // The ranks did not come to a verdict.
  if (FaultOf(verdict) == Fault::kPeer && assignment.rank == 0) Forget(assignment, step, temporary, host);
  return verdict;
}

void RemoveAbandonedCheckpoints(const RankAssignment& assignment, RankHost& host) {
  const std::string& root = assignment.config.checkpoint.folder;
  if (root.empty() || assignment.rank != 0) return;
  constexpr int64_t kKeepAllPublished = 0;
  const int64_t step = assignment.start_step;
  const absl::Status pruned = PruneCheckpoints(root, kKeepAllPublished, step, MakeFence(assignment, step, host));
  if (pruned.ok() || absl::IsNotFound(pruned)) return;  // the first checkpoint makes the folder
  host.OnLog(absl::StrCat("unfinished checkpoints stay: ", pruned.message()));
}

}  // namespace motley::engine
