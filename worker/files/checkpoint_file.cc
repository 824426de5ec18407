#include "worker/files/checkpoint_file.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/beneath.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/job_uid.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "worker/files/job_folder.h"

namespace motley::worker {
namespace {

constexpr size_t kMostDigitsOfRank = 9;

}  // namespace

absl::Status CheckNames(const LocalCheckpoint& checkpoint) {
  MOTLEY_RETURN_IF_ERROR(CheckName("the job's id", checkpoint.job.value()));
  if (!IsJobUid(checkpoint.job_uid.value())) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(checkpoint.job_uid.value()), " is no job's uid"));
  }
  const std::optional<CheckpointFolder> folder = ParseCheckpointFolder("", checkpoint.name);
  const bool named = folder && folder->published && folder->epoch > 0 && folder->job_uid.empty() &&
                     checkpoint.name == CheckpointFolderName(folder->step, folder->epoch);
  return named ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrCat(Quoted(checkpoint.name), " is no published checkpoint's name"));
}

std::string UnpublishedName(const LocalCheckpoint& checkpoint) {
  const std::optional<CheckpointFolder> folder = ParseCheckpointFolder("", checkpoint.name);
  return folder ? TemporaryCheckpointFolderName(folder->step, folder->epoch, checkpoint.job_uid) : "";
}

absl::Status CheckRankFile(const std::string& name) {
  absl::string_view digits = name;
  bool is_one = absl::ConsumePrefix(&digits, "rank-") && absl::ConsumeSuffix(&digits, ".bin") && !digits.empty() &&
                digits.size() <= kMostDigitsOfRank;
  for (const char c : digits) is_one &= absl::ascii_isdigit(static_cast<unsigned char>(c));
  return is_one ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is no rank's file"));
}

absl::StatusOr<FileDescriptor> OpenCheckpointFile(const std::string& local, const LocalCheckpoint& checkpoint,
                                                  const std::string& file) {
  MOTLEY_RETURN_IF_ERROR(CheckNames(checkpoint));
  if (!file.empty()) MOTLEY_RETURN_IF_ERROR(CheckRankFile(file));
  const std::string name = file.empty() ? kManifestName : file;
  const absl::Status nothing = absl::NotFoundError(absl::StrCat(name, " of ", checkpoint.name, " is not here"));
  const std::string folder = LocalCheckpoints(local, checkpoint.job, checkpoint.job_uid);
  const FileDescriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (at.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return nothing;
    return FileError(errno, "open the checkpoints of job", checkpoint.job.value());
  }
  for (const std::string& lies_in : {checkpoint.name, UnpublishedName(checkpoint)}) {
    absl::StatusOr<FileDescriptor> opened = OpenFileBeneath(at, absl::StrCat(lies_in, "/", name), Resolver::kParts);
    // A link or a pipe is somebody's who would lead the reading elsewhere.
    if (opened.ok() || FaultOf(opened.status()) == Fault::kStorage) return opened;
  }
  return nothing;
}

}  // namespace motley::worker
