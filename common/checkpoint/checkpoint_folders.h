// The names in a job's checkpoint folder, and what is there. docs/use/checkpoints.md
//
//   step-00000040-gen-3                         published by epoch 3, which people know as generation 3
//   step-00000040-gen-3-job-<uid>               the same, where another job, of another cluster, had that name
//   .tmp-step-00000060-gen-3-job-<uid>          being written by epoch 3
//   .tmp-step-00000020-gen-3-job-<uid>.trash    being deleted by epoch 3
//
// Of older builds, whose unfinished ones have no uid:
//
//   step-00000040                        published
//   .tmp-step-00000040-epoch-3.aside-0   was published, until a writer that was killed took its name for another
//   .tmp-step-00000060-epoch-3           unfinished, as is every other suffix
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace motley {

// No coordinator comes so far: an epoch a second for thirty thousand years. A name with such a number is none of these.
inline constexpr int64_t kFirstEpochNobodyGives = 1'000'000'000'000;

// Without a uid: "step-00000040-gen-3", ".tmp-step-00000040-gen-3".
std::string CheckpointFolderName(int64_t step, int64_t epoch, const JobUid& uid = JobUid());
std::string TemporaryCheckpointFolderName(int64_t step, int64_t epoch, const JobUid& uid = JobUid());

struct CheckpointFolder {
  std::string path, name;
  int64_t step = 0;
  int64_t epoch = 0;  // 0: an older build published it, and its name has none
  JobUid job_uid;     // empty: the name has none
  bool published = false;
};
// Null for other names.
std::optional<CheckpointFolder> ParseCheckpointFolder(const std::string& root, const std::string& name);
// Published and temporary folders under `root`, the newest first: the newest epoch's, and of one epoch the highest step. As
// each epoch goes on from the newest checkpoint, this is the order of steps, too, and of one step that of epochs; but for what
// comes late, of a writer whose epoch is not the newest any more: it is behind all that newer epochs have saved. NOT_FOUND:
// there is no such root.
absl::StatusOr<std::vector<CheckpointFolder>> ListCheckpointFolders(const std::string& root);

}  // namespace motley
