#include "common/checkpoint/mark_file.h"

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"

namespace motley {
namespace {

constexpr size_t kMarkDigits = 32;

}  // namespace

bool IsMark(std::string_view text) {
  return text.size() == kMarkDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

absl::Status WriteMark(const std::string& folder, const std::string& mark) {
  const std::string path = absl::StrCat(folder, "/", kMarkName);
  if (!IsMark(mark)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a mark has ", kMarkDigits, " hexadecimal digits, this text has not"));
  }
  return WriteFileDurably(path, absl::StrCat(mark, "\n"));
}

absl::StatusOr<std::string> ReadMark(const FileDescriptor& at, const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kMarkName);
  const absl::StatusOr<FileDescriptor> file = OpenForReadIn(at, kMarkName, path);
  absl::StatusOr<std::string> line = file.ok() ? ReadSmallFile(*file, path, kMarkDigits + 1) : file.status();
  // What lies there is something else, or longer: no error of the file system that may be gone later.
  if (!line.ok()) return FaultOf(line.status()) == Fault::kOurs ? absl::StatusOr<std::string>("") : line.status();
  if (line->empty() || line->back() != '\n') return "";
  line->pop_back();
  return IsMark(*line) ? *line : "";
}

}  // namespace motley
