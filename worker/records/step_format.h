// The forms in which a job's step records are kept beside its checkpoints. docs/use/step-records.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job.h"
#include "common/session/step.h"

namespace motley::worker {

struct StepRecord {
  StepStats stats;          // what rank 0 knows: without the job's times and the fullest device's memory
  double unix_seconds = 0;  // of the wall clock of rank 0's node
  int64_t tokens = 0;       // trained on so far; a step that was repeated counts once
};

struct StepFormat {
  std::string_view folder;                                       // in the checkpoint folder
  std::string (*file_name)(Epoch epoch);                         // sorts by generation
  std::string (*head)(int64_t first_step, double unix_seconds);  // what the file begins with; its first record is `first_step`
  std::string (*record)(const StepRecord& record);
};

extern const StepFormat kTensorBoardFormat, kJsonLinesFormat, kCsvFormat;

// What the job asks for.
std::vector<StepFormat> StepFormatsOf(const MetricsSection& metrics);

// One row a value of a record: its key in JSON Lines and CSV, its tag in TensorBoard ("": it has a place of its own there).
struct StepColumn {
  std::string_view key, tag;
  std::optional<double> (*value)(const StepRecord& record);
  bool integer = false;
};
const std::vector<StepColumn>& StepColumns();

}  // namespace motley::worker
