#include "common/checkpoint/checkpoint_folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// Takes the digits at the front of `text`.
bool ConsumeNumber(absl::string_view* text, int64_t* number) {
  const size_t end = std::min(text->find_first_not_of("0123456789"), text->size());
  const bool parsed = absl::SimpleAtoi(text->substr(0, end), number);
  text->remove_prefix(end);
  return parsed;
}

}  // namespace

std::string CheckpointFolderName(int64_t step) { return absl::StrFormat("step-%08d", step); }

std::string TemporaryCheckpointFolderName(int64_t step, int64_t epoch) {
  return absl::StrFormat(".tmp-step-%08d-epoch-%d", step, epoch);
}

int64_t StepOfFolder(const std::string& name) {
  int64_t step = -1;
  absl::string_view digits = name;
  if (!absl::ConsumePrefix(&digits, "step-") || !absl::SimpleAtoi(digits, &step)) return -1;
  return CheckpointFolderName(step) == name ? step : -1;
}

std::optional<CheckpointFolder> ParseCheckpointFolder(const std::string& root, const std::string& name) {
  CheckpointFolder folder{.path = absl::StrCat(root, "/", name), .name = name};
  folder.step = StepOfFolder(name);
  folder.published = folder.step >= 0;
  if (folder.published) return folder;
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, ".tmp-step-") || !ConsumeNumber(&rest, &folder.step) ||
      !absl::ConsumePrefix(&rest, "-epoch-") || !ConsumeNumber(&rest, &folder.epoch)) {
    return std::nullopt;
  }
  folder.suffix = std::string(rest);
  return folder;
}

absl::StatusOr<std::vector<CheckpointFolder>> ListCheckpointFolders(const std::string& root) {
  std::vector<CheckpointFolder> folders;
  std::error_code error;
  for (fs::directory_iterator entry(root, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (auto folder = ParseCheckpointFolder(root, entry->path().filename().string())) folders.push_back(*std::move(folder));
  }
  if (error) return FileError(error.value(), "list the checkpoint folder", root);
  std::sort(folders.begin(), folders.end(),
            [](const auto& a, const auto& b) { return a.step != b.step ? a.step > b.step : a.name < b.name; });
  return folders;
}

}  // namespace motley
