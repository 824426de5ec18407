// Text as tokens: the bytes of one UTF-8 file, or of the files of a folder (and its subfolders; hidden ones left out) in order of
// their paths, each once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/files.h"
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

 private:
  struct Part {
    int64_t end = 0;                          // bytes of the text up to its own end
    std::string name;                         // in the folder
    FileMark mark;                            // of the file that was walked
    std::shared_ptr<const WatchedFile> file;  // null: it is opened again where it is read, since so many stay open
  };

  TextSource() = default;
  absl::StatusOr<std::shared_ptr<const WatchedFile>> FileOf(const Part& part) const;

  FileDescriptor top_;
  std::string path_;
  OpenBeyond beyond_;
  std::vector<Part> parts_;
  int64_t bytes_ = 0;
  std::string digest_;
};

}  // namespace motley
