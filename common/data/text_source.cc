#include "common/data/text_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/data/data_format.h"

namespace motley {
namespace {

// A process may have some thousand files open, and has others to open.
constexpr size_t kMostOpenFiles = 128;
constexpr int64_t kBytesAtATime = 1 << 14;

absl::Status NotUtf8(const std::string& path, int64_t offset) {
  return absl::InvalidArgumentError(absl::StrCat("data file ", path, " is not UTF-8 text: wrong byte sequence at byte ", offset,
                                                 "; convert it (iconv) or leave it out"));
}

absl::Status HoldsNul(const std::string& path, int64_t offset) {
  return absl::InvalidArgumentError(absl::StrCat("data file ", path, " is not plain text: it holds a NUL at byte ", offset,
                                                 "; convert it (of UTF-16: iconv -f UTF-16 -t UTF-8), mend it or leave it out"));
}

// Of one file: what its first block shows it to be, and whether its bytes are text.
class TextChecker {
 public:
  explicit TextChecker(std::string file) : file_(std::move(file)) {}
  absl::Status Feed(std::string_view block) {
    if (std::exchange(first_, false)) MOTLEY_RETURN_IF_ERROR(CheckIsText(file_, block));
    // NULs are valid UTF-8, and in no text: a database, a damaged file.
    if (const size_t nul = block.find('\0'); nul != block.npos) return HoldsNul(file_, bytes_ + static_cast<int64_t>(nul));
    bytes_ += static_cast<int64_t>(block.size());
    const auto wrong = utf8_.Feed(block);
    return wrong ? NotUtf8(file_, *wrong) : absl::OkStatus();
  }
  absl::Status End() const {
    const auto wrong = utf8_.End();
    return wrong ? NotUtf8(file_, *wrong) : absl::OkStatus();
  }

 private:
  const std::string file_;
  bool first_ = true;
  int64_t bytes_ = 0;  // of the blocks before
  Utf8Checker utf8_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextSource>> TextSource::Open(const FileDescriptor& opened, const std::string& path,
                                                             OpenBeyond beyond) {
  std::unique_ptr<TextSource> text(new TextSource());
  MOTLEY_ASSIGN_OR_RETURN(text->top_, Again(opened, path));
  text->path_ = path;
  text->beyond_ = std::move(beyond);
  Sha256 sha;
  const auto walk = [&](DataFile file) -> absl::Status {
    TextChecker checker(file.path);
    Part part;
    part.name = file.name;
    MOTLEY_ASSIGN_OR_RETURN(part.file, WatchedFile::Watch(std::move(file.opened), file.path));
    MOTLEY_RETURN_IF_ERROR(part.file->ForEachBlock(0, part.file->bytes(), [&](std::string_view block) -> absl::Status {
      MOTLEY_RETURN_IF_ERROR(checker.Feed(block));
      sha.Update(block.data(), block.size());
      return absl::OkStatus();
    }));
    MOTLEY_RETURN_IF_ERROR(checker.End());
    text->bytes_ += part.file->bytes();
    part.end = text->bytes_;
    part.mark = part.file->mark();
    part.is_named = part.file->is_named();
    text->altered_at_.emplace_back(part.file->altered_at());
    if (text->parts_.size() >= kMostOpenFiles) part.file = nullptr;
    text->parts_.push_back(std::move(part));
    return absl::OkStatus();
  };
  MOTLEY_RETURN_IF_ERROR(ForEachDataFile(opened, path, walk, text->beyond_));
  text->digest_ = sha.Hex();
  return text;
}

absl::StatusOr<std::shared_ptr<const WatchedFile>> TextSource::FileOf(size_t number) const {
  const Part& part = parts_[number];
  if (part.file != nullptr) return part.file;
  const std::string file = absl::StrCat(path_, "/", part.name);
  MOTLEY_ASSIGN_OR_RETURN(FileDescriptor opened, OpenInDataFolder(top_, path_, part.name, beyond_));
  MOTLEY_ASSIGN_OR_RETURN(auto watched, WatchedFile::Watch(std::move(opened), file));
  if (watched->mark() == part.mark && (watched->is_named() || !part.is_named)) return watched;
  return absl::FailedPreconditionError(absl::StrCat(
      "data file ", file, " was changed or replaced after it was opened; put it back as it was, or begin a new job"));
}

absl::Status TextSource::Read(int64_t begin, int64_t count, int32_t* out) const {
  if (begin < 0 || count < 0 || begin > bytes_ || count > bytes_ - begin) {
    return absl::OutOfRangeError(
        absl::StrCat("data ", path_, " has ", bytes_, " bytes; ", count, " were asked for at byte ", begin));
  }
  char bytes[kBytesAtATime];
  auto part = std::upper_bound(parts_.begin(), parts_.end(), begin, [](int64_t at, const Part& p) { return at < p.end; });
  while (count > 0) {
    const auto number = static_cast<size_t>(part - parts_.begin());
    const int64_t part_begin = part->end - part->mark.bytes;
    MOTLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const WatchedFile> file, FileOf(number));
    if (part->file == nullptr && altered_at_[number].exchange(file->altered_at()) != file->altered_at()) touched_ = true;
    while (count > 0 && begin < part->end) {
      const int64_t next = std::min({count, part->end - begin, kBytesAtATime});
      MOTLEY_RETURN_IF_ERROR(file->Read(begin - part_begin, bytes, next));
      for (int64_t i = 0; i < next; ++i) *out++ = static_cast<unsigned char>(bytes[i]);
      begin += next;
      count -= next;
    }
    ++part;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TextSource::DigestAgain(const std::function<absl::Status(std::string_view, Sha256&)>& feed) const {
  Sha256 sha;
  touched_ = false;
  for (size_t number = 0; number < parts_.size(); ++number) {
    MOTLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const WatchedFile> file, FileOf(number));
    MOTLEY_RETURN_IF_ERROR(file->BeginComparison());
    altered_at_[number] = file->altered_at();
    MOTLEY_RETURN_IF_ERROR(file->ForEachBlock(0, file->bytes(), [&](std::string_view block) { return feed(block, sha); }));
  }
  return sha.Hex();
}

absl::Status TextSource::ForEachOpen(const std::function<absl::Status(const WatchedFile&)>& use) const {
  for (const Part& part : parts_) {
    if (part.file != nullptr) MOTLEY_RETURN_IF_ERROR(use(*part.file));
  }
  return absl::OkStatus();
}

}  // namespace motley
