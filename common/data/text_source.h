// Text as tokens: the bytes of one UTF-8 file, or of the files of a folder (and its subfolders; hidden ones left out) in order of
// their paths, each once.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/data/data_files.h"
#include "common/data/token_source.h"
#include "common/data/watched_file.h"

namespace motley {

class TextSource : public TokenSource {
 public:
  // Walks the text once: every block is checked and digested, none is kept. NOT_FOUND / PERMISSION_DENIED / INVALID_ARGUMENT (not
  // UTF-8, or a NUL: file and byte offset; a table, an archive, ...: data_format.h). `beyond` is called at reads, too.
  static absl::StatusOr<std::unique_ptr<TextSource>> Open(const FileDescriptor& opened, const std::string& path,
                                                          OpenBeyond beyond);

  int64_t num_tokens() const override { return bytes_; }
  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override;
  const std::string& digest() const { return digest_; }  // SHA-256 (hex) of the bytes
  const std::string& path() const { return path_; }

  // Reads all bytes once more; `feed` gets each block and what digests it, and may end it by its error.
  absl::StatusOr<std::string> DigestAgain(const std::function<absl::Status(std::string_view, Sha256&)>& feed) const;
  // Of the files that stay open; stops at the first error that `use` returns.
  absl::Status ForEachOpen(const std::function<absl::Status(const WatchedFile&)>& use) const;
  // WatchedFile::TakeTouched of the others.
  bool TakeTouched() const { return touched_.exchange(false); }

 private:
  struct Part {
    int64_t end = 0;                          // bytes of the text up to its own end
    std::string name;                         // in the folder
    FileMark mark;                            // of the file that was walked
    std::shared_ptr<const WatchedFile> file;  // null: it is opened again where it is read, since so many stay open
    bool is_named = false;                    // as the file was
  };

  TextSource() = default;
  absl::StatusOr<std::shared_ptr<const WatchedFile>> FileOf(size_t part) const;

  FileDescriptor top_;
  std::string path_;
  OpenBeyond beyond_;
  std::vector<Part> parts_;
  // By part: when it was last altered, as far as was looked.
  mutable std::deque<std::atomic<int64_t>> altered_at_;
  mutable std::atomic<bool> touched_{false};
  int64_t bytes_ = 0;
  std::string digest_;
};

}  // namespace motley
