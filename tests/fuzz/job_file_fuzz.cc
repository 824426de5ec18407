// The job file (TOML), and the store's form of what it gave.
#include "common/job/job_file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const absl::StatusOr<JobFile> file = ParseJobFile(fuzz::Text(data, size), "/fuzz/job.toml", {});
  if (!file.ok()) return 0;
  fuzz::Require(Validate(file->config).ok(), "a job file was taken whose job is refused");
  LearningRate(file->config, file->config.training.steps - 1);
  return 0;
}
