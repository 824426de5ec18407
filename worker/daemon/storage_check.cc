#include "worker/daemon/storage_check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/dataset.h"
#include "common/utf8.h"

namespace motley::worker {
namespace {

absl::Status WriteToken(const std::string& folder, const std::string& path, const std::string& token) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat("checkpoint folder '", folder, "' cannot be made: ", error.message()));
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written = fd >= 0 && write(fd, token.data(), token.size()) == static_cast<ssize_t>(token.size()) && fsync(fd) == 0;
  const int failure = errno;
  if (fd >= 0) close(fd);
  if (written) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("checkpoint folder '", folder, "' cannot be written: ", strerror(failure),
                                                  "; give checkpoint.folder as a folder that every worker may write"));
}

bool ReadsBack(const std::string& path, const std::string& token) {
  std::ifstream in(path, std::ios::binary);
  return in && std::string(std::istreambuf_iterator<char>(in), {}) == token;
}

}  // namespace

std::string TokenPath(const StorageCheckCommand& check) {
  return absl::StrCat(check.checkpoint_folder, "/.token-", check.job.value());
}

StorageReport CheckStorage(const StorageCheckCommand& check, const Clock& clock, absl::Duration patience) {
  StorageReport report{check.job, check.epoch, "", 0, "", check.token.empty(), check.check_id};
  const std::string path = TokenPath(check);
  if (check.write_token && !check.token.empty()) {
    if (absl::Status status = WriteToken(check.checkpoint_folder, path, check.token); !status.ok()) {
      report.error = ValidUtf8(std::string(status.message()));
      return report;
    }
  }
  if (check.data_path.empty()) {  // the writer of a probe's token: it trains, and has seen its data
    report.token_seen = true;
    return report;
  }
  absl::StatusOr<DataSummary> summary = SummarizeData(check.data_path);
  if (!summary.ok()) {
    report.error = ValidUtf8(std::string(summary.status().message()));  // file names are any bytes
    return report;
  }
  report.data_bytes = summary->bytes;
  report.data_digest = summary->digest;
  const absl::Duration end = clock.Now() + patience;
  while (!report.token_seen) {
    report.token_seen = ReadsBack(path, check.token);
    if (report.token_seen || clock.Now() >= end) break;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return report;
}

}  // namespace motley::worker
