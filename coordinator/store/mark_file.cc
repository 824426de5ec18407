#include "coordinator/store/mark_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kLineBytes = 128;
constexpr int64_t kWritesPerSync = 64;

std::string Line(const StoreMark& mark) {
  const std::string text = absl::StrFormat("store %s commits %d", mark.store_id, mark.commits);
  std::string line = absl::StrCat(text, " sha256 ", Sha256Hex(text).substr(0, 32));
  line.resize(kLineBytes - 1, ' ');
  return line + "\n";
}

// Null: not a line that was written whole.
std::optional<StoreMark> ParseLine(std::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(std::string(line), ' ', absl::SkipEmpty());
  StoreMark mark;
  if (words.size() < 4 || !absl::SimpleAtoi(words[3], &mark.commits)) return std::nullopt;
  mark.store_id = words[1];
  if (Line(mark) != line) return std::nullopt;
  return mark;
}

bool IsBlank(std::string_view line) { return line.find_first_not_of('\0') == std::string_view::npos; }

}  // namespace

absl::StatusOr<MarkFile::Content> MarkFile::Read(const std::string& path) {
  Content content;
  auto text = ReadSmallFile(path, 2 * kLineBytes);
  if (absl::IsNotFound(text.status())) return content;
  content.exists = true;
  if (absl::IsInvalidArgument(text.status())) {  // longer than it ever is
    content.damaged = true;
    return content;
  }
  MOTLEY_RETURN_IF_ERROR(text.status());
  text->resize(2 * kLineBytes, '\0');
  for (int64_t at = 0; at < 2 * kLineBytes; at += kLineBytes) {
    const std::string_view line = std::string_view(*text).substr(static_cast<size_t>(at), kLineBytes);
    const std::optional<StoreMark> mark = ParseLine(line);
    if (!mark) {
      content.damaged = content.damaged || at == 0 || !IsBlank(line);
    } else if (!content.mark || mark->commits > content.mark->commits) {
      content.mark = mark;
    }
  }
  return content;
}

absl::StatusOr<std::unique_ptr<MarkFile>> MarkFile::Open(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return FileError(errno, "write", path);
  return std::unique_ptr<MarkFile>(new MarkFile(path, std::move(file)));
}

absl::Status MarkFile::Write(const StoreMark& mark) {
  const std::string line = Line(mark);
  // The first write fills both lines: what was there before belongs to another state.
  for (int64_t slot = 0; slot < 2; ++slot) {
    if (writes_ > 0 && slot != writes_ % 2) continue;
    if (pwrite(file_.get(), line.data(), line.size(), slot * kLineBytes) != kLineBytes) return FileError(errno, "write", path_);
  }
  if (writes_++ % kWritesPerSync != 0) return absl::OkStatus();
  if (writes_ == 1 && ftruncate(file_.get(), 2 * kLineBytes) != 0) return FileError(errno, "write", path_);
  return fdatasync(file_.get()) == 0 ? absl::OkStatus() : FileError(errno, "sync", path_);
}

}  // namespace motley::coordinator
