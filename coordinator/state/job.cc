#include "coordinator/state/job.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/data/dataset.h"

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
  return TrainingSamples(job.data_bytes, config.training.seq_len, config.data.validation_fraction) * config.training.seq_len;
}

std::string AllStepsDone(const JobRecord& job) {
  const int64_t steps = job.config.training.steps;
  return steps == 1 ? "its one step is done" : absl::StrCat("all ", steps, " steps are done");
}

std::string CheckpointFolder(const JobRecord& job) {
  const std::string& folder = job.config.checkpoint.folder;
  return folder.empty() ? "" : absl::StrCat(folder, folder.back() == '/' ? "" : "/", job.id.value());
}

}  // namespace motley::coordinator
