#include "coordinator/state/resume.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/cut_text.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/job/job_fields.h"

namespace motley::coordinator {
namespace {

// A checkpoint is of one model, data type, data and order of samples; the rest is settings.
constexpr std::string_view kFixed[] = {"model.name",
                                       "model.flavor",
                                       "model.config",
                                       "model.config_json",
                                       "training.seq_len",
                                       "training.global_batch_size",
                                       "training.seed",
                                       "training.dtype",
                                       "optimizer.name",
                                       "data.path",
                                       "data.validation_fraction",
                                       "data.validation_path",
                                       "checkpoint.folder",
                                       "checkpoint.storage",
                                       "checkpoint.initial"};
constexpr size_t kShownBytes = 60;

std::string Short(const std::string& value) { return CutText(value, kShownBytes); }

}  // namespace

absl::StatusOr<JobRecord> GoneBack(const JobRecord& ended, int64_t from_step) {
  if (from_step < 0) return absl::InvalidArgumentError(absl::StrCat("--from must be a step, 0 or more, got ", from_step));
  if (!IsOnNodesDisks(ended.config.checkpoint)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--from is for jobs whose checkpoints lie on their nodes' disks; those of job ", ended.id.value(),
                     " lie in ", CheckpointFolder(ended), ": move the folders of later steps away there"));
  }
  JobRecord next = ended;
  // Of what it is to adopt nobody knows how far the generations go.
  next.go_back = {AdoptsAll(ended) ? Epoch(kFirstEpochNobodyGives - 1) : ended.epoch, from_step};
  next.step = std::min(next.step, from_step);
  next.newest_checkpoint.clear();
  const auto safe = ParseCheckpointFolder("", ended.safe_checkpoint);
  if (!safe || next.go_back.GaveUp(Epoch(safe->epoch), safe->step)) next.safe_checkpoint.clear();
  return next;
}

absl::StatusOr<JobRecord> Resumed(const JobRecord& ended, const JobConfig& config, int64_t now_unix_ms) {
  JobConfig before = ended.config, after = config;  // the tables point into mutable values
  const std::vector<JobField> old_fields = JobFields(before), new_fields = JobFields(after);
  std::vector<std::string> problems, changes;
  for (size_t i = 0; i < old_fields.size(); ++i) {
    const std::string path = old_fields[i].Path(), was = old_fields[i].ValueText(), is = new_fields[i].ValueText();
    if (was == is) continue;
    if (std::find(std::begin(kFixed), std::end(kFixed), path) == std::end(kFixed)) {
      changes.push_back(absl::StrCat(path, " ", Short(was), " -> ", Short(is)));
      continue;
    }
    problems.push_back(absl::StrCat(path, " of a job may not change, its checkpoints depend on it: it is ", Short(was), ", got ",
                                    Short(is), "; submit another job instead"));
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  if (config.training.steps <= ended.step) {
    return absl::FailedPreconditionError(absl::StrCat("job ", ended.id.value(), " has done ", ended.step,
                                                      " steps and training.steps is ", config.training.steps,
                                                      ": give more, --set training.steps=N"));
  }
  JobRecord next = ended;
  next.config = config;
  next.phase = JobPhase::kQueued;
  next.reason = absl::StrCat("resumed after step ", ended.step);
  if (!changes.empty()) absl::StrAppend(&next.reason, ": ", absl::StrJoin(changes, ", "));
  next.submitted_unix_ms = now_unix_ms;
  next.finished_unix_ms = 0;
  next.stop_requested = false;
  next.plannings_begun = 0;
  next.error_code = absl::StatusCode::kOk;
  return next;
}

}  // namespace motley::coordinator
