#include "coordinator/client/read_while_saved.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace motley::client {
namespace {

constexpr int kMostTimes = 10;  // a job that saves each step of a small model is faster than most of them

// Published ones; none where the folder cannot be listed.
std::vector<std::string> CheckpointsIn(const std::string& root) {
  std::vector<std::string> names;
  const auto folders = ListCheckpointFolders(root);
  if (!folders.ok()) return names;
  for (const CheckpointFolder& folder : *folders) {
    if (folder.published) names.push_back(folder.name);
  }
  return names;
}

// What a file that goes meanwhile looks like: ENOENT, ESTALE of NFS, a checkpoint without its files.
bool MayBeGone(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsUnavailable(status) || absl::IsDataLoss(status);
}

}  // namespace

absl::StatusOr<FoundCheckpoint> ReadWhileSaved(const std::string& root,
                                               const std::function<absl::StatusOr<FoundCheckpoint>()>& try_once) {
  for (int times = 1;; ++times) {
    const std::vector<std::string> before = CheckpointsIn(root);
    absl::StatusOr<FoundCheckpoint> found = try_once();
    if (!MayBeGone(found.status()) || CheckpointsIn(root) == before) return found;
    if (times == kMostTimes) {
      return absl::Status(
          found.status().code(),
          absl::StrCat(std::string(found.status().message()), "; ", kMostTimes, " times the checkpoints of ", root,
                       " were others before one was read: a job saves there faster; let it keep more of them "
                       "(checkpoint.keep_latest_k), or stop it for as long"));
    }
  }
}

}  // namespace motley::client
