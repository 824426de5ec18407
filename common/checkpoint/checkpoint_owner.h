// Whose a checkpoint is. A job's id does not say it: two clusters with one share may both have a job of that id, and an id that
// was freed is given again. So every manifest holds the uid of the job that wrote it.
#pragma once

#include <string>

#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_folders.h"

namespace motley {

struct CheckpointManifest;

// A job, as who looks for its checkpoints or writes them.
struct CheckpointOwner {
  JobId job;
  JobUid uid;                // empty: of a coordinator from before uids
  bool has_unnamed = false;  // what has no uid under its id is its own: ranks from before uids wrote for it
};

// Another uid, or another id, is another job's.
bool IsOwn(const CheckpointOwner& owner, const CheckpointManifest& manifest);
// Of what was not published, by its name alone.
bool IsOwnUnfinished(const CheckpointOwner& owner, const CheckpointFolder& folder);
// "job 'demo' (uid 0f3c...)", of who made it.
std::string MakerOf(const CheckpointManifest& manifest);
// Of a manifest that reads: its folder has another generation's name than it was published under. Older names have none.
bool IsRenamed(const CheckpointFolder& folder, const CheckpointManifest& manifest);

}  // namespace motley
