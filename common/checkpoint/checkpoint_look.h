// Whether the ranks of a save write into one and the same folder, looked at before the manifest says so: a share that is not
// mounted on a node any more leaves a folder of the same name there. docs/use/checkpoints.md, "Writing".
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"

namespace motley {

// Of rank 0, in the temporary folder: it is gone again before the folder is published.
inline constexpr char kTokenName[] = "token";

// Makes the folder where it is missing, as WriteCheckpointFile does, with its errors. `text` is one line, not empty.
absl::Status WriteToken(const std::string& folder, const std::string& text);
// The line; empty: it is not seen, or not wholly, after `patience`. Opens the folder anew for each look: network file systems
// ask their server then.
std::string ReadToken(const std::string& folder, absl::Duration patience);
absl::Status RemoveToken(const std::string& folder);

// The indices of the files that are not seen in the folder with their size after `patience`. Looks as ReadToken does.
std::vector<size_t> FilesNotSeen(const std::string& folder, const std::vector<CheckpointFile>& files, absl::Duration patience);

}  // namespace motley
