#include "worker/files/keep_copies.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/job_uid.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_fence.h"
#include "common/checkpoint/local_checkpoint.h"
#include "common/checkpoint/resume_folder.h"
#include "worker/files/job_folder.h"

namespace motley::worker {
namespace {

// A copy has it until it is whole.
constexpr char kPartSuffix[] = ".part";

// Of the coordinator's word, which it gave for the newest generation: nobody is asked again.
CheckpointFence FenceOf(const JobId& job, const JobUid& uid, Epoch epoch) {
  return {.owner = {job, uid}, .epoch = epoch.value(), .confirm = [](const std::string&) { return absl::OkStatus(); }};
}

// Whole: one that the coordinator believes to be missing may be here, and damaged.
absl::StatusOr<bool> IsHere(const std::string& folder, const CheckpointFile& file, CheckpointBringer& bringer) {
  const std::string path = absl::StrCat(folder, "/", file.name);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_size != file.bytes) return false;
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor opened, OpenForRead(path));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> altered,
                          AlteredBlocks(opened, path, file, AllBlocks(file), [&] { return bringer.SayAndAsk(); }));
  return altered.empty();
}

// A copy while it comes: what an earlier try brought of it is not brought again.
struct Part {
  CheckpointFile file;
  ResumeFile made;
  std::vector<int64_t> lacking;
};

absl::StatusOr<Part> BeginPart(const std::string& folder, const CheckpointFile& file, CheckpointBringer& bringer) {
  CheckpointFile part = file;
  part.name += kPartSuffix;
  MOTLEY_ASSIGN_OR_RETURN(ResumeFile made, ResumeFile::GoOn(folder, part));
  MOTLEY_ASSIGN_OR_RETURN(std::vector<int64_t> lacking, made.Lacking(AllBlocks(file), [&] { return bringer.SayAndAsk(); }));
  return Part{file, std::move(made), std::move(lacking)};
}

absl::Status EndPart(CheckpointBringer& bringer, const std::string& folder, Part& part) {
  MOTLEY_RETURN_IF_ERROR(bringer.Bring(part.file, part.lacking, part.made));
  MOTLEY_RETURN_IF_ERROR(part.made.Finish());
  const std::string path = absl::StrCat(folder, "/", part.file.name), part_path = path + kPartSuffix;
  if (::rename(part_path.c_str(), path.c_str()) != 0) return FileError(errno, "rename", part_path);
  return SyncFolder(folder);
}

}  // namespace

absl::Status KeepCopies(const CopyCommand& command, const Bringing& bringing) {
  const LocalCheckpoint checkpoint = {command.job, command.job_uid, command.source.name};
  MOTLEY_RETURN_IF_ERROR(CheckNames(checkpoint));
  FetchReport report{command.job, command.epoch};
  report.copy_id = command.copy_id;
  CheckpointBringer bringer(command.source, checkpoint, std::move(report), bringing);
  MOTLEY_ASSIGN_OR_RETURN(const MeantManifest manifest, bringer.FindManifest());
  const std::string root = LocalCheckpoints(bringing.local, command.job, command.job_uid);
  const std::string folder = absl::StrCat(root, "/", checkpoint.name);
  if (!FileExists(folder)) {
    MOTLEY_RETURN_IF_ERROR(MakeFolders(root));
    MOTLEY_RETURN_IF_ERROR(PublishLocalCheckpoint(root, manifest.read, manifest.text, command.source.mark,
                                                  FenceOf(command.job, command.job_uid, command.epoch))
                               .status());
  } else if (!manifest.own) {
    return absl::FailedPreconditionError(absl::StrCat(checkpoint.name, " here is another checkpoint"));
  }
  std::vector<Part> parts;
  for (const CheckpointFile& file : manifest.read.files) {
    if (!absl::c_linear_search(command.files, file.name)) continue;
    MOTLEY_ASSIGN_OR_RETURN(const bool here, IsHere(folder, file, bringer));
    if (here) continue;
    MOTLEY_ASSIGN_OR_RETURN(Part part, BeginPart(folder, file, bringer));
    for (const int64_t block : part.lacking) bringer.Expect(BytesOfBlock(file, block));
    parts.push_back(std::move(part));
  }
  bringer.Say();
  for (Part& part : parts) MOTLEY_RETURN_IF_ERROR(EndPart(bringer, folder, part));
  bringer.Say();
  return absl::OkStatus();
}

absl::Status DropCheckpoints(const DropCommand& command, const std::string& local) {
  MOTLEY_RETURN_IF_ERROR(CheckName("the job's id", command.job.value()));
  if (!IsJobUid(command.job_uid.value())) {
    return absl::InvalidArgumentError(absl::StrCat("'", command.job_uid.value(), "' is no job's uid"));
  }
  std::vector<LocalDrop> drops;
  for (const DroppedCheckpoint& checkpoint : command.checkpoints) {
    drops.push_back({checkpoint.step, checkpoint.epoch.value(), checkpoint.manifest_digest});
  }
  return DropLocalCheckpoints(LocalCheckpoints(local, command.job, command.job_uid), drops,
                              FenceOf(command.job, command.job_uid, command.epoch));
}

}  // namespace motley::worker
