// Which parts of files were found to be what they are to be, so that a comparison goes on where an earlier one was ended. A file
// that was altered since, in whatever way, is another one here. Nothing is kept of parts that were not as they should be: they
// are read again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/data/watched_file.h"

namespace motley {

struct FilePart {
  FileMark file;
  int64_t altered_at = 0;  // WatchedFile::altered_at
  int64_t number = 0;
  friend auto operator<=>(const FilePart&, const FilePart&) = default;
};

// Thread-safe.
class KnownParts {
 public:
  static constexpr int64_t kWholeFile = -1;  // in place of a part's number
  // Parts that are kept, 64 MiB each of tokens; where there are more, what was known is forgotten.
  static constexpr int64_t kMost = int64_t{1} << 16;

  // Kept in memory without a name that a worker gives its ranks, one after the other or together, so that it outlives them; -1:
  // in this process alone. The descriptor is not closed.
  explicit KnownParts(int fd = -1);

  // `digest`: SHA-256 in hexadecimal digits.
  bool Has(const FilePart& part, const std::string& digest) const;
  void Add(const FilePart& part, const std::string& digest);

 private:
  void Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int fd_;
  mutable absl::Mutex mutex_;
  std::map<FilePart, std::string> parts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace motley
