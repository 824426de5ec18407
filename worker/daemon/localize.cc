#include "worker/daemon/localize.h"

#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/job/job_input.h"
#include "worker/files/input_folder.h"
#include "worker/files/job_folder.h"

namespace motley::worker {

bool IsLocal(const StartCommand& command) { return !command.ranks.empty() && IsOnNodesDisks(command.ranks[0].config.checkpoint); }

void Localize(const std::string& local, StartCommand& command) {
  for (RankAssignment& rank : command.ranks) {
    rank.config.checkpoint.folder = LocalCheckpoints(local, rank.job, rank.job_uid);
    // What a job begins with lies where its path says.
    if (!command.source.name.empty()) rank.resume_from = ResumeFolder(local, rank.job, rank.job_uid, command.source.name);
  }
}

void LocalizeInputs(const std::string& local, RankAssignment& rank) {
  for (const InputPath& path : InputPaths(rank.config)) {
    if (const std::optional<JobInput> input = ParseInput(*path.path)) *path.path = LocalPathOf(local, *input);
  }
  // The weights that it begins with.
  if (const std::optional<JobInput> input = ParseInput(rank.resume_from)) rank.resume_from = LocalPathOf(local, *input);
}

void LocalizeInputs(const std::string& local, StorageCheckCommand& check) {
  for (std::string* path : {&check.data_path, &check.validation_path, &check.initial}) {
    if (const std::optional<JobInput> input = ParseInput(*path)) *path = LocalPathOf(local, *input);
  }
}

std::vector<std::string> InputRoots(const std::string& local, const std::vector<std::string>& paths) {
  std::vector<std::string> roots;
  const std::string inputs = absl::StrCat(InputsFolder(local), "/");
  for (const std::string& path : paths) {
    // Of its id, so that no other input may be read.
    const std::string root = path.substr(0, path.find('/', inputs.size()));
    if (path.starts_with(inputs) && IsInputId(std::string_view(root).substr(inputs.size()))) roots.push_back(root);
  }
  return roots;
}

}  // namespace motley::worker
