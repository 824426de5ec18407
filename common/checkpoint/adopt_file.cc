#include "common/checkpoint/adopt_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/shell_text.h"
#include "common/base/status_macros.h"

namespace motley {

std::string AdoptPath(const std::string& folder) { return absl::StrCat(folder, "/adopt"); }

std::string AdoptLine(std::string_view words, const std::string& folder) {
  const bool plain =
      std::all_of(words.begin(), words.end(), [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-' || c == ' '; });
  return absl::StrCat("echo ", plain ? std::string(words) : ShellQuoted(words), " >", ShellQuoted(AdoptPath(folder)));
}

absl::StatusOr<std::optional<std::set<std::string>>> ReadAdopt(const std::string& folder) {
  constexpr size_t kMostBytes = 4096;
  const std::string path = AdoptPath(folder);
  const absl::StatusOr<FileDescriptor> file = OpenForRead(path, SymbolicLinks::kRefuse);
  if (absl::IsNotFound(file.status())) return std::nullopt;
  MOTLEY_RETURN_IF_ERROR(file.status());
  std::string text;
  MOTLEY_RETURN_IF_ERROR(ForEachBlock(*file, path, [&](std::string_view block) -> absl::Status {
    text.append(block);
    if (text.size() <= kMostBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, " is larger than ", kMostBytes, " bytes"));
  }));
  const std::set<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  return words;
}

absl::Status PutAdoptAside(const std::string& folder, const CheckpointFence& fence) {
  const std::string from = AdoptPath(folder), to = absl::StrCat(from, ".done-", fence.owner.uid.value());
  if (!FileExists(from)) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(fence.confirm("put adopt aside"));
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, "put adopt aside"));
  if (std::rename(from.c_str(), to.c_str()) == 0) return SyncFolder(folder);
  return errno == ENOENT ? absl::OkStatus() : FileError(errno, "rename adopt to", to);
}

}  // namespace motley
