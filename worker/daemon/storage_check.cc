#include "worker/daemon/storage_check.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/job_uid.h"
#include "common/base/missing_mount.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/data/dataset.h"
#include "common/inputs/path_sample.h"
#include "worker/daemon/initial_check.h"

namespace motley::worker {
namespace {

constexpr char kFolderKey[] = "checkpoint.folder";

std::string TokenName(const StorageCheckCommand& check) {
  return absl::StrCat(".token-", check.job.value(), check.job_uid.empty() ? "" : "-", check.job_uid.value());
}

// The token is a new file: what was prepared under its name, a link above all, is removed and neither followed nor emptied.
absl::Status WriteToken(const StorageCheckCommand& check, const FileRoots& roots) {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor folder, roots.MakeFolder(kFolderKey, check.checkpoint_folder));
  const std::string name = TokenName(check);
  (void)::unlinkat(folder.get(), name.c_str(), 0);
  const FileDescriptor file(::openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  const bool written = file.get() >= 0 &&
                       ::write(file.get(), check.token.data(), check.token.size()) == static_cast<ssize_t>(check.token.size()) &&
                       ::fsync(file.get()) == 0;
  if (written) return absl::OkStatus();
  const absl::Status failed = FileError(errno, "write to the checkpoint folder", check.checkpoint_folder);
  return absl::Status(failed.code(), absl::StrCat(std::string(failed.message()),
                                                  "; give checkpoint.folder as a folder that every worker may write"));
}

// The folder is made by another node, so a missing one is no error yet.
bool ReadsBack(const StorageCheckCommand& check, const FileRoots& roots) {
  const absl::StatusOr<FileDescriptor> folder = roots.Open(kFolderKey, check.checkpoint_folder);
  if (!folder.ok()) return false;
  const absl::StatusOr<FileDescriptor> file = OpenFileBeneath(*folder, TokenName(check));
  if (!file.ok()) return false;
  std::string text(check.token.size() + 1, '\0');
  const ssize_t got = ::read(file->get(), text.data(), text.size());
  return got >= 0 && text.substr(0, static_cast<size_t>(got)) == check.token;
}

absl::Status CheckNamed(const StorageCheckCommand& check, const FileRoots& roots) {
  // They become parts of a file's name.
  MOTLEY_RETURN_IF_ERROR(CheckName("job_id", check.job.value()));
  if (!check.job_uid.empty() && !IsJobUid(check.job_uid.value())) return absl::InvalidArgumentError("job_uid is no uid");
  if (check.checkpoint_folder.empty()) return absl::OkStatus();
  if (const absl::Status mounted = CheckMounted(check.checkpoint_folder); !mounted.ok())
    return absl::Status(mounted.code(), absl::StrCat(kFolderKey, ": ", mounted.message()));
  const absl::Status folder = roots.Open(kFolderKey, check.checkpoint_folder).status();
  return absl::IsNotFound(folder) ? absl::OkStatus() : folder;
}

// Data are opened once, beneath their root: what the path leads to later is not read.
struct JobsData {
  const char* key;  // of the job
  const std::string& path;
  FileDescriptor opened{};

  // No path: nothing, and an empty summary.
  absl::Status Open(const FileRoots& roots) {
    if (path.empty()) return absl::OkStatus();
    MOTLEY_ASSIGN_OR_RETURN(opened, roots.OpenForRead(key, path));
    return absl::OkStatus();
  }
  absl::StatusOr<DataSummary> Summarize(const FileRoots& roots, KnownParts* known) const {
    if (path.empty()) return DataSummary();
    const auto beyond = [this, &roots](const std::string& target) { return roots.OpenForRead(key, target); };
    absl::StatusOr<DataSummary> data = SummarizeData(opened, path, beyond, known);
    const std::string text(data.status().message());
    if (data.ok() || text.starts_with(key)) return data;
    return absl::Status(data.status().code(), absl::StrCat(key, ": ", text));
  }
};

absl::Status Check(const StorageCheckCommand& check, const FileRoots& roots, KnownParts* known, StorageReport& report) {
  JobsData data{"data.path", check.data_path}, validation{"data.validation_path", check.validation_path};
  MOTLEY_RETURN_IF_ERROR(data.Open(roots));
  MOTLEY_RETURN_IF_ERROR(validation.Open(roots));
  MOTLEY_RETURN_IF_ERROR(CheckNamed(check, roots));
  if (check.write_token && !check.token.empty()) MOTLEY_RETURN_IF_ERROR(WriteToken(check, roots));
  // The writer of a probe's token is told no data: it trains, and has seen them.
  MOTLEY_ASSIGN_OR_RETURN(report.data, data.Summarize(roots, known));
  MOTLEY_ASSIGN_OR_RETURN(report.validation, validation.Summarize(roots, known));
  return absl::OkStatus();
}

// Whether a checkpoint holds what was written, for one that another node read otherwise. A folder that is not seen here says
// nothing about what is in it.
absl::Status VerifyWhole(const StorageCheckCommand& check, const FileRoots& roots) {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor at, roots.Open(kFolderKey, check.verify_checkpoint));
  MOTLEY_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(at, check.verify_checkpoint));
  return VerifyCheckpoint(at, check.verify_checkpoint, manifest);
}

// Whether data_path is what the sample is of.
void LookAtSample(const StorageCheckCommand& check, const FileRoots& roots, StorageReport& report) {
  const auto open = [&](const std::string& path) { return roots.OpenForRead("path", path); };
  const absl::StatusOr<Sampled> sampled = CompareWithSample(check.data_path, *check.sample, open);
  // A disk that does not read now says nothing of what lies there.
  const bool unknown = FaultOf(sampled.status()) == Fault::kStorage && !absl::IsNotFound(sampled.status());
  report.sampled = sampled.ok() ? *sampled : unknown ? Sampled::kNotLooked : Sampled::kAbsent;
  if (sampled.ok()) return;
  report.error = CleanLine(std::string(sampled.status().message()));
  report.error_code = sampled.status().code();
}

}  // namespace

std::string TokenPath(const StorageCheckCommand& check) { return absl::StrCat(check.checkpoint_folder, "/", TokenName(check)); }

void RemoveToken(const StorageCheckCommand& check, const FileRoots& roots) {
  const absl::StatusOr<FileDescriptor> folder = roots.Open(kFolderKey, check.checkpoint_folder);
  if (folder.ok()) (void)::unlinkat(folder->get(), TokenName(check).c_str(), 0);
}

StorageReport CheckStorage(const StorageCheckCommand& check, const FileRoots& roots, const Clock& clock, absl::Duration patience,
                           KnownParts* known) {
  StorageReport report{check.job, check.epoch, "", {}, check.token.empty(), check.check_id};
  if (!check.verify_checkpoint.empty()) {
    const absl::Status verified = VerifyWhole(check, roots);
    report.error = CleanLine(std::string(verified.message()));
    report.error_code = verified.code();
    return report;
  }
  if (check.sample) {
    LookAtSample(check, roots, report);
    return report;
  }
  absl::Status checked = CheckInitial(check.initial, roots, &report);
  if (checked.ok()) checked = Check(check, roots, known, report);
  if (!checked.ok()) {
    report.error = CleanLine(std::string(checked.message()));  // file names are any bytes
    report.error_code = checked.code();
    return report;
  }
  const absl::Duration end = clock.Now() + patience;
  while (!report.token_seen) {
    report.token_seen = ReadsBack(check, roots);
    if (report.token_seen || clock.Now() >= end) break;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return report;
}

}  // namespace motley::worker
