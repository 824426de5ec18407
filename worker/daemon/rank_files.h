// What of the file system a rank may use: the worker's roots, and what its libraries need. The kernel holds it to that, so that a
// link which somebody swaps while the rank trains leads nowhere. docs/use/security.md, "Files of jobs".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/beneath.h"
#include "common/base/landlock.h"

namespace motley::worker {

struct RankRoots {
  std::vector<std::string> read;   // all of the worker's
  std::vector<std::string> write;  // the one above the job's checkpoint folder
};

// Of a job with this checkpoint folder ("": it saves nothing).
RankRoots RootsOfRank(const FileRoots& roots, const std::string& checkpoint_folder);
// Of one whose checkpoints lie on this node's disk, in this folder of the job's own: what it goes on from lies beside it.
RankRoots RootsOfLocalRank(const FileRoots& roots, const std::string& checkpoint_folder);

// As `motley-rank` takes them.
std::vector<std::string> RootArguments(const RankRoots& roots);

std::vector<FileGrant> GrantsOfRank(const RankRoots& roots);

// Holds this process to its grants, before it opens anything that a job names; keep what is returned. OK with nothing where the
// kernel has no Landlock: the worker says so when it starts.
absl::StatusOr<std::vector<FileDescriptor>> HoldRankToItsFiles(const RankRoots& roots);

// One line for people: whether this machine's ranks are held.
std::string DescribeHold(const absl::StatusOr<int>& landlock_version);

}  // namespace motley::worker
