#include "worker/files/checkpoint_file.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <vector>

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
#include "common/weights/base_model.h"
#include "worker/files/job_folder.h"

namespace motley::worker {
namespace {

constexpr size_t kMostDigitsOfRank = 9;
constexpr size_t kMostName = 1024;
constexpr std::string_view kFilesOfBase = "files/";

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

absl::Status CheckBaseFile(const std::string& name) {
  const size_t slash = name.find('/');
  const std::string_view base = std::string_view(name).substr(0, slash);
  const std::string_view rest = slash == std::string::npos ? "" : std::string_view(name).substr(slash + 1);
  const bool is_one = IsBaseName(base) && (rest == kBaseDocument || rest.starts_with(kFilesOfBase)) && name.size() < kMostName &&
                      CheckPath("", absl::StrCat("/", name)).ok();
  return is_one ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat(Quoted(name), " is no file of a checkpoint"));
}

bool IsOneBlock(const std::string& file) { return !CheckRankFile(file).ok(); }

absl::StatusOr<FileDescriptor> OpenCheckpointFile(const std::string& local, const LocalCheckpoint& checkpoint,
                                                  const std::string& file) {
  MOTLEY_RETURN_IF_ERROR(CheckNames(checkpoint));
  const bool of_base = !file.empty() && !CheckRankFile(file).ok();
  if (of_base) MOTLEY_RETURN_IF_ERROR(CheckBaseFile(file));
  const std::string name = file.empty() ? kManifestName : file;
  const absl::Status nothing = absl::NotFoundError(absl::StrCat(name, " of ", checkpoint.name, " is not here"));
  const std::string folder = LocalCheckpoints(local, checkpoint.job, checkpoint.job_uid);
  const FileDescriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (at.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return nothing;
    return FileError(errno, "open the checkpoints of job", checkpoint.job.value());
  }
  const std::vector<std::string> paths =
      of_base ? std::vector{file}
              : std::vector{absl::StrCat(checkpoint.name, "/", name), absl::StrCat(UnpublishedName(checkpoint), "/", name)};
  for (const std::string& path : paths) {
    absl::StatusOr<FileDescriptor> opened = OpenFileBeneath(at, path, Resolver::kParts);
    // A link or a pipe is somebody's who would lead the reading elsewhere.
    if (opened.ok() || FaultOf(opened.status()) == Fault::kStorage) return opened;
  }
  return nothing;
}

}  // namespace motley::worker
