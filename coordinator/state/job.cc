#include "coordinator/state/job.h"

#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/data/data_size.h"
#include "common/session/loss_text.h"

namespace motley::coordinator {
namespace {

constexpr std::array<std::string_view, kNumJobPhases> kNames = {"queued",  "waiting",    "profiling", "planning", "starting",
                                                                "running", "replanning", "succeeded", "failed",   "stopped"};

}  // namespace

std::string_view JobPhaseName(JobPhase phase) { return kNames[static_cast<size_t>(phase)]; }

absl::StatusOr<JobPhase> ParseJobPhase(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<JobPhase>(i);
  }
  return absl::DataLossError(absl::StrCat("job state '", std::string(name), "' is not known"));
}

int64_t TrainingTokens(const JobStatus& job, const JobConfig& config) {
  return TrainingSamples(job.data, config.training.seq_len, ValidationFraction(config.data)) * config.training.seq_len;
}

std::string AllStepsDone(const JobRecord& job) {
  const int64_t steps = job.config.training.steps;
  const std::string done = steps == 1 ? "its one step is done" : absl::StrCat("all ", steps, " steps are done");
  const double validation = job.last_step.step == steps ? job.last_step.validation_loss.value_or(0) : 0;
  if (std::isfinite(validation)) return done;
  return absl::StrCat(done, ", but the last validation loss is ", LossText(validation),
                      ": the weights have diverged, or are too large for training.mixed_precision_param; lower optimizer.lr and "
                      "train anew, or from an older checkpoint (checkpoint.initial)");
}

bool AwaitsAdopted(const JobStatus& job) {
  const bool begins_anew = job.go_back.epoch > Epoch() && job.go_back.step == 0;
  return job.adopted_below > Epoch() && job.newest_checkpoint.empty() && !begins_anew;
}

bool AdoptsAll(const JobStatus& job) { return job.adopted_below == Epoch(kFirstEpochNobodyGives); }

CheckpointOwner OwnerOf(const JobStatus& job) { return {job.id, job.uid, job.has_unnamed_checkpoints, job.adopted}; }

std::string AdoptText(const JobStatus& job) {
  return absl::StrCat(job.uid.value(), job.has_unnamed_checkpoints ? absl::StrCat(" ", job.id.value()) : "",
                      job.adopted.empty() ? "" : " ", job.adopted);
}

std::string CheckpointFolder(const JobRecord& job) {
  const std::string& folder = job.config.checkpoint.folder;
  return folder.empty() ? "" : absl::StrCat(folder, folder.back() == '/' ? "" : "/", job.id.value());
}

std::string CheckpointPath(const JobRecord& job, const std::string& name) {
  return IsOnNodesDisks(job.config.checkpoint) ? name : absl::StrCat(CheckpointFolder(job), "/", name);
}

}  // namespace motley::coordinator
