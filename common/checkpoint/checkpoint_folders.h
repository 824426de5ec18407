// The names in a job's checkpoint folder, and what is there. docs/checkpoints.md
//
//   step-00000040                        published
//   .tmp-step-00000060-epoch-3           being written by epoch 3; or, when its manifest is of another epoch, set aside by epoch
//   3 .tmp-step-00000040-epoch-3.aside-0   set aside by epoch 3: was published, and is one until its manifest is gone
//   .tmp-step-00000040-epoch-3.trash-0   being deleted by epoch 3
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace motley {

inline constexpr char kAsideSuffix[] = ".aside-";
inline constexpr char kTrashSuffix[] = ".trash-";

std::string CheckpointFolderName(int64_t step);                          // "step-00000040"
std::string TemporaryCheckpointFolderName(int64_t step, int64_t epoch);  // ".tmp-step-00000040-epoch-3"

// "step-00000040" -> 40; -1 for other names.
int64_t StepOfFolder(const std::string& name);

struct CheckpointFolder {
  std::string path, name;
  int64_t step = 0;
  bool published = false;
  int64_t epoch = 0;   // in the name of a temporary folder
  std::string suffix;  // what follows it: "", ".aside-0"
  bool aside() const { return suffix.rfind(kAsideSuffix, 0) == 0; }
};
// Null for other names.
std::optional<CheckpointFolder> ParseCheckpointFolder(const std::string& root, const std::string& name);
// Published and temporary folders under `root`, highest step first. NOT_FOUND: there is no such root.
absl::StatusOr<std::vector<CheckpointFolder>> ListCheckpointFolders(const std::string& root);

}  // namespace motley
