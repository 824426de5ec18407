#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/checkpoint.h"
#include "common/checkpoint_manifest.h"
#include "common/files.h"
#include "common/status_macros.h"

namespace motley {

namespace fs = std::filesystem;

absl::Status PruneCheckpoints(const std::string& root, int64_t keep_latest, int64_t epoch, int64_t newest_step) {
  std::vector<std::pair<int64_t, std::string>> published;
  std::vector<std::string> doomed;
  std::error_code error;
  for (fs::directory_iterator entry(root, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (const int64_t step = StepOfFolder(name); step >= 0) published.push_back({step, entry->path().string()});
    const int64_t of_epoch = EpochOfTemporaryFolder(name);
    if (of_epoch >= 0 && of_epoch < epoch) doomed.push_back(entry->path().string());
  }
  if (error) return FileError(error.value(), "list the checkpoint folder", root);
  std::sort(published.rbegin(), published.rend());
  int64_t kept = 0;
  for (const auto& [step, folder] : published) {
    if (keep_latest == 0 || (step <= newest_step && kept++ < keep_latest)) continue;
    // Without its manifest a half-deleted folder is no checkpoint: it goes first.
    MOTLEY_RETURN_IF_ERROR(RemoveTree(folder + "/" + kManifestName));
    doomed.push_back(folder);
  }
  for (const std::string& folder : doomed) MOTLEY_RETURN_IF_ERROR(RemoveTree(folder));
  return doomed.empty() ? absl::OkStatus() : SyncFolder(root);
}

}  // namespace motley
