// Whose a checkpoint is. A job's id does not say it: two clusters with one share may both have a job of that id, and an id that
// was freed is given again. So every manifest holds the uid of the job that wrote it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_folders.h"

namespace motley {

struct CheckpointManifest;

// A job, as who looks for its checkpoints or writes them.
struct CheckpointOwner {
  JobId job;
  JobUid uid;                // empty: of a coordinator from before uids
  bool has_unnamed = false;  // what has no uid under its id is its own: ranks from before uids wrote for it
  // Whose checkpoints it goes on from until it has saved one, as WordToAdopt gives it; empty: nobody's.
  std::string adopted = {};
};

// Another uid, or another id, is another job's.
bool IsOwn(const CheckpointOwner& owner, const CheckpointManifest& manifest);
// Of what was not published, by its name alone.
bool IsOwnUnfinished(const CheckpointOwner& owner, const CheckpointFolder& folder);
// "job 'demo' (uid 0f3c...)", of who made it.
std::string MakerOf(const CheckpointManifest& manifest);
// Of a manifest that reads: its folder has the name of another step or generation than it was published under. Older names have
// no generation.
bool IsRenamed(const CheckpointFolder& folder, const CheckpointManifest& manifest);
// FAILED_PRECONDITION: it is renamed; says what to call it.
absl::Status CheckName(const CheckpointFolder& folder, const CheckpointManifest& manifest);

// What the file `adopt` in a job's folder holds, so that the job goes on from checkpoints as this one: the uid of who made it, or
// the id where it has no uid.
std::string WordToAdopt(const CheckpointManifest& manifest);

}  // namespace motley
