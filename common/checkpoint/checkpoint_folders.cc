#include "common/checkpoint/checkpoint_folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/files.h"
#include "common/base/job_uid.h"

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

constexpr absl::string_view kOfJob = "-job-";
constexpr size_t kUidDigits = 32;

// Takes "-job-<uid>" at the front, where it is there. False: what follows "-job-" is no uid.
bool ConsumeUid(absl::string_view* text, JobUid* uid) {
  if (!absl::ConsumePrefix(text, kOfJob)) return true;
  const std::string digits(text->substr(0, kUidDigits));
  if (!IsJobUid(digits)) return false;
  *uid = JobUid(digits);
  text->remove_prefix(kUidDigits);
  return true;
}

std::string StepName(int64_t step) { return absl::StrFormat("step-%08d", step); }

}  // namespace

std::string CheckpointFolderName(int64_t step, int64_t epoch, const JobUid& uid) {
  return absl::StrCat(StepName(step), "-gen-", epoch, uid.empty() ? "" : kOfJob, uid.value());
}

std::string TemporaryCheckpointFolderName(int64_t step, int64_t epoch, const JobUid& uid) {
  return absl::StrCat(".tmp-", CheckpointFolderName(step, epoch, uid));
}

std::optional<CheckpointFolder> ParseCheckpointFolder(const std::string& root, const std::string& name) {
  CheckpointFolder folder{.path = absl::StrCat(root, "/", name), .name = name};
  absl::string_view rest = name;
  const bool temporary = absl::ConsumePrefix(&rest, ".tmp-");
  if (!absl::ConsumePrefix(&rest, "step-") || !ConsumeNumber(&rest, &folder.step)) return std::nullopt;
  const bool has_epoch = absl::ConsumePrefix(&rest, "-gen-") || (temporary && absl::ConsumePrefix(&rest, "-epoch-"));
  if (has_epoch && (!ConsumeNumber(&rest, &folder.epoch) || folder.epoch >= kFirstEpochNobodyGives)) return std::nullopt;
  if (has_epoch && !ConsumeUid(&rest, &folder.job_uid)) return std::nullopt;
  folder.published = !temporary || absl::StartsWith(rest, ".aside-");
  if (temporary) {
    if (folder.published) folder.epoch = 0;  // of who took the name
    return has_epoch ? std::optional(folder) : std::nullopt;
  }
  const std::string exactly = has_epoch ? CheckpointFolderName(folder.step, folder.epoch, folder.job_uid) : StepName(folder.step);
  return name == exactly ? std::optional(folder) : std::nullopt;
}

absl::StatusOr<std::vector<CheckpointFolder>> ListCheckpointFolders(const std::string& root) {
  std::vector<CheckpointFolder> folders;
  std::error_code error;
  for (fs::directory_iterator entry(root, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (auto folder = ParseCheckpointFolder(root, entry->path().filename().string())) folders.push_back(*std::move(folder));
  }
  if (error) return FileError(error.value(), "list the checkpoint folder", root);
  // Where all else is the same an older build's names are left: what kept its name is newer than what lost it.
  const auto place = [](const CheckpointFolder& folder) { return std::tie(folder.epoch, folder.step, folder.name); };
  std::sort(folders.begin(), folders.end(), [&](const auto& a, const auto& b) { return place(a) > place(b); });
  return folders;
}

}  // namespace motley
