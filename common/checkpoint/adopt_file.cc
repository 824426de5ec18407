#include "common/checkpoint/adopt_file.h"

#include <sys/stat.h>

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
namespace {

// What somebody may have made to adopt with, rightly or not. A folder holds the checkpoints of the job whose id is "adopt", where
// another job saves in the folder above.
bool MayBeAdopt(unsigned mode) { return S_ISREG(mode) || S_ISFIFO(mode) || S_ISLNK(mode); }

// Some editors and shells begin a text with a byte-order mark, in UTF-8 or in UTF-16. Words of an `adopt` are ASCII.
void DropByteOrder(std::string* text) {
  if (text->starts_with("\xEF\xBB\xBF")) {
    text->erase(0, 3);
  } else if (text->starts_with("\xFF\xFE") || text->starts_with("\xFE\xFF")) {
    text->erase(0, 2);
    std::erase(*text, '\0');
  }
}

}  // namespace

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
  DropByteOrder(&text);
  const std::set<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  return words;
}

absl::Status PutAdoptAside(const std::string& folder, const CheckpointFence& fence) {
  const std::string from = AdoptPath(folder), to = absl::StrCat(from, ".done-", fence.owner.uid.value());
  struct stat found;
  if (::lstat(from.c_str(), &found) != 0) return errno == ENOENT ? absl::OkStatus() : FileError(errno, "read", from);
  if (!MayBeAdopt(found.st_mode)) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(fence.confirm("put adopt aside"));
  MOTLEY_RETURN_IF_ERROR(BeforeOperation(fence, "put adopt aside"));
  if (std::rename(from.c_str(), to.c_str()) == 0) return SyncFolder(folder);
  return errno == ENOENT ? absl::OkStatus() : FileError(errno, "rename adopt to", to);
}

}  // namespace motley
