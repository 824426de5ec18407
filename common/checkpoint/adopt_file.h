// The file `adopt` in a job's checkpoint folder: whose checkpoints the job goes on from, as long as it has none of its own.
// docs/use/checkpoints.md
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_fence.h"

namespace motley {

// "<folder>/adopt".
std::string AdoptPath(const std::string& folder);
// For a shell: "echo 0f3c... >'/checkpoints/demo/adopt'". An id among the words comes from a manifest, which may be anybody's.
std::string AdoptLine(std::string_view words, const std::string& folder);

// Its words (WordToAdopt), whatever byte-order mark they follow. Null: there is no such file. INVALID_ARGUMENT: it is no file, or
// too large. Fault::kStorage: it cannot be read now.
absl::StatusOr<std::optional<std::set<std::string>>> ReadAdopt(const std::string& folder);
// By the job's ranks, which may write there: the job trains from what the file names, which its coordinator remembers, or has a
// checkpoint of its own. The file is called adopt.done-<uid of the job> from now on, or the next job of the id would adopt the
// same, and nobody has said that. Asks before. Fine where there is none, or where a folder has the name: another job's.
absl::Status PutAdoptAside(const std::string& folder, const CheckpointFence& fence);

}  // namespace motley
