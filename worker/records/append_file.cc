#include "worker/records/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace motley::worker {

absl::StatusOr<AppendFile> AppendFile::CreateNew(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.get() < 0) return FileError(errno, "write", path);
  return AppendFile(path, std::move(file));
}

absl::Status AppendFile::Append(std::string_view records) {
  int64_t done = 0;
  const int64_t size = static_cast<int64_t>(records.size());
  while (done < size) {
    const ssize_t put = ::pwrite(file_.get(), records.data() + done, static_cast<size_t>(size - done), bytes_ + done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const absl::Status status = FileError(errno, "write", path_);
      // Half a record would end what readers understand. The next Append begins at the same place.
      (void)!::ftruncate(file_.get(), bytes_);
      return status;
    }
    done += put;
  }
  bytes_ += size;
  return absl::OkStatus();
}

absl::Status AppendFile::Sync() { return ::fdatasync(file_.get()) == 0 ? absl::OkStatus() : FileError(errno, "write", path_); }

}  // namespace motley::worker
