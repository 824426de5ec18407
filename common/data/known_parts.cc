#include "common/data/known_parts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"

namespace motley {
namespace {

constexpr size_t kDigestBytes = 32;

struct StoredPart {
  uint64_t device, number;
  int64_t bytes, seconds, nanoseconds, altered_at, part;
  char digest[kDigestBytes];
};
constexpr auto kStoredBytes = static_cast<int64_t>(sizeof(StoredPart));

StoredPart ToStored(const FilePart& part, const std::string& binary) {
  StoredPart record{part.file.device,      part.file.number, part.file.bytes, part.file.seconds,
                    part.file.nanoseconds, part.altered_at,  part.number,     {}};
  std::memcpy(record.digest, binary.data(), kDigestBytes);
  return record;
}

FilePart PartOf(const StoredPart& record) {
  return {{record.device, record.number, record.bytes, record.seconds, record.nanoseconds}, record.altered_at, record.part};
}

// Whole records; 0 where there is no memory.
int64_t StoredIn(int fd) {
  struct stat found;
  return fd >= 0 && ::fstat(fd, &found) == 0 ? found.st_size / kStoredBytes : 0;
}

}  // namespace

KnownParts::KnownParts(int fd) : fd_(fd) {
  absl::MutexLock lock(&mutex_);
  Load();
}

void KnownParts::Load() {
  std::vector<StoredPart> records(static_cast<size_t>(StoredIn(fd_)));
  const size_t bytes = records.size() * sizeof(StoredPart);
  if (bytes == 0 || ::pread(fd_, records.data(), bytes, 0) != static_cast<ssize_t>(bytes)) return;
  for (const StoredPart& record : records) {
    parts_[PartOf(record)] = absl::BytesToHexString(absl::string_view(record.digest, kDigestBytes));
  }
}

bool KnownParts::Has(const FilePart& part, const std::string& digest) const {
  absl::MutexLock lock(&mutex_);
  const auto found = parts_.find(part);
  return found != parts_.end() && found->second == digest;
}

// Of two processes that add at one moment one may write over the other's: that part is read again.
void KnownParts::Add(const FilePart& part, const std::string& digest) {
  const std::string binary = absl::HexStringToBytes(digest);
  if (binary.size() != kDigestBytes) return;
  absl::MutexLock lock(&mutex_);
  parts_[part] = digest;
  if (fd_ < 0) return;
  int64_t records = StoredIn(fd_);
  if (records >= kMost) {
    if (::ftruncate(fd_, 0) != 0) return;
    records = 0;
  }
  const StoredPart record = ToStored(part, binary);
  (void)::pwrite(fd_, &record, sizeof(record), records * kStoredBytes);
}

}  // namespace motley
