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

std::string TokenPath(const std::string& checkpoint_folder, const std::string& job_id) {
  return absl::StrCat(checkpoint_folder, "/.token-", job_id);
}

v1::StorageCheckResult CheckStorage(const v1::StorageCheck& check, absl::Duration patience) {
  v1::StorageCheckResult result;
  result.set_job_id(check.job_id());
  result.set_epoch(check.epoch());
  result.set_check_id(check.check_id());
  const std::string path = TokenPath(check.checkpoint_folder(), check.job_id());
  if (check.token().empty()) {
    result.set_token_seen(true);
  } else if (check.write_token()) {
    if (absl::Status status = WriteToken(check.checkpoint_folder(), path, check.token()); !status.ok()) {
      result.set_error(ValidUtf8(std::string(status.message())));
      return result;
    }
  }
  if (check.data_path().empty()) {  // the writer of a probe's token: it trains, and has seen its data
    result.set_token_seen(true);
    return result;
  }
  absl::StatusOr<DataSummary> summary = SummarizeData(check.data_path());
  if (!summary.ok()) {
    result.set_error(ValidUtf8(std::string(summary.status().message())));  // file names are any bytes
    return result;
  }
  result.set_data_bytes(summary->bytes);
  result.set_data_digest(summary->digest);
  const absl::Time deadline = absl::Now() + patience;
  while (!result.token_seen()) {
    result.set_token_seen(ReadsBack(path, check.token()));
    if (result.token_seen() || absl::Now() >= deadline) break;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return result;
}

}  // namespace motley::worker
