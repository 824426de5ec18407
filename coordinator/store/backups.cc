#include "coordinator/store/backups.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "coordinator/store/maintenance.h"

namespace motley::coordinator {
namespace {

constexpr char kBegin[] = "motley-", kEnd[] = ".db";

std::string BeginOf(const BackupOwner& owner) {
  return absl::StrCat(kBegin, owner.store_id, "-", absl::StrFormat("%06d", owner.term), "-");
}

absl::Status CheckFolder(const std::string& folder) {
  struct stat found;
  if (stat(folder.c_str(), &found) != 0) return FileError(errno, "look at", folder);
  if (!S_ISDIR(found.st_mode)) return absl::InvalidArgumentError(absl::StrCat("'", folder, "' is no folder"));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("others may write in '", folder, "' and so replace a backup, which holds the cluster's keys; chmod 0700 it"));
}

// What `use` says of every file of the owner: of its name what follows the term.
absl::Status ForEachOf(const std::string& folder, const BackupOwner& owner,
                       const std::function<absl::Status(const std::string&)>& use) {
  std::error_code error;
  const std::string begin = BeginOf(owner);
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin)) MOTLEY_RETURN_IF_ERROR(use(name.substr(begin.size())));
  }
  return error ? FileError(error.value(), "list", folder) : absl::OkStatus();
}

// The oldest first.
absl::StatusOr<std::vector<int64_t>> TimesOf(const std::string& folder, const BackupOwner& owner) {
  std::vector<int64_t> times;
  MOTLEY_RETURN_IF_ERROR(ForEachOf(folder, owner, [&](const std::string& rest) {
    int64_t unix_ms = 0;
    if (rest.ends_with(kEnd) && absl::SimpleAtoi(rest.substr(0, rest.size() - std::string_view(kEnd).size()), &unix_ms))
      times.push_back(unix_ms);
    return absl::OkStatus();
  }));
  std::sort(times.begin(), times.end());
  return times;
}

// What a crash left: the keys are in it.
absl::Status RemoveHalf(const std::string& folder, const BackupOwner& owner) {
  return ForEachOf(folder, owner, [&](const std::string& rest) {
    const bool half = rest.ends_with(".partial") || rest.ends_with(".partial-wal");
    return half ? RemoveTree(absl::StrCat(folder, "/", BeginOf(owner), rest)) : absl::OkStatus();
  });
}

}  // namespace

std::string BackupName(const BackupOwner& owner, int64_t unix_ms) {
  return absl::StrCat(BeginOf(owner), absl::StrFormat("%015d", unix_ms), kEnd);
}

absl::StatusOr<std::string> AddBackup(const std::string& state_folder, const std::string& folder, const BackupOwner& owner,
                                      int64_t unix_ms) {
  MOTLEY_RETURN_IF_ERROR(CheckFolder(folder));
  MOTLEY_ASSIGN_OR_RETURN(std::vector<int64_t> times, TimesOf(folder, owner));
  // Above all that are there: a clock that was set back must not make the newest one the oldest.
  const int64_t time = times.empty() ? unix_ms : std::max(unix_ms, times.back() + 1);
  const auto path_of = [&](int64_t of) { return absl::StrCat(folder, "/", BackupName(owner, of)); };
  MOTLEY_RETURN_IF_ERROR(RemoveHalf(folder, owner));
  MOTLEY_RETURN_IF_ERROR(BackUpStore(state_folder, path_of(time)).status());
  times.push_back(time);
  for (size_t i = 0; i + kBackupsKept < times.size(); ++i) MOTLEY_RETURN_IF_ERROR(RemoveTree(path_of(times[i])));
  return path_of(time);
}

absl::StatusOr<std::string> NewestBackup(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  std::map<std::string, std::string> newest;  // by store; names of one store sort by term, then by time
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    std::string& of_store = newest[name.substr(0, name.find('-', std::string_view(kBegin).size()))];
    of_store = std::max(of_store, name);
  }
  if (error) return FileError(error.value(), "list", path);
  if (newest.empty())
    return absl::NotFoundError(absl::StrCat("no backup is in '", path, "': none is named motley-STORE-TERM-TIME.db"));
  if (newest.size() == 1) return absl::StrCat(path, "/", newest.begin()->second);
  std::vector<std::string> names;
  for (const auto& [store, name] : newest) names.push_back(name);
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "' has backups of several stores; name one: ", absl::StrJoin(names, ", ")));
}

}  // namespace motley::coordinator
