#include "worker/files/stage.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/needed_blocks.h"
#include "common/checkpoint/resume_folder.h"
#include "common/weights/base_model.h"
#include "worker/files/job_folder.h"

namespace motley::worker {
namespace {

std::vector<std::string> OwnFolders(const std::string& local, const LocalCheckpoint& checkpoint, const MeantManifest& manifest) {
  const std::string checkpoints = LocalCheckpoints(local, checkpoint.job, checkpoint.job_uid);
  std::vector<std::string> folders = {absl::StrCat(checkpoints, "/", UnpublishedName(checkpoint))};
  // Two stores may have given one name: the files beside another manifest are not of this checkpoint.
  if (!manifest.own_is_another) folders.insert(folders.begin(), absl::StrCat(checkpoints, "/", checkpoint.name));
  return folders;
}

// What is to be brought of a file.
struct Lack {
  const CheckpointFile* file;
  std::vector<int64_t> blocks;            // from other nodes
  std::vector<int64_t> good;              // as they are in `own`
  FileDescriptor own = FileDescriptor();  // this node's, damaged
};

absl::StatusOr<std::vector<Lack>> WhatLacks(const std::string& folder, const std::vector<CheckpointFile>& files,
                                            const std::vector<size_t>& missing, const std::vector<std::vector<int64_t>>& needed,
                                            bool verify, const std::function<bool()>& stopped) {
  std::vector<Lack> lacks;
  for (size_t f = 0; f < files.size(); ++f) {
    if (absl::c_linear_search(missing, f)) {
      lacks.push_back({&files[f], needed[f], {}});
      continue;
    }
    if (!verify) continue;
    const std::string path = absl::StrCat(folder, "/", files[f].name);
    MOTLEY_ASSIGN_OR_RETURN(FileDescriptor own, OpenForRead(path));
    // Also what others will read of it: they hear of it by this.
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> altered, AlteredBlocks(own, path, files[f], AllBlocks(files[f]), stopped));
    if (altered.empty()) continue;
    Lack& lack = lacks.emplace_back(Lack{&files[f], {}, {}, std::move(own)});
    for (const int64_t block : needed[f]) (absl::c_linear_search(altered, block) ? lack.blocks : lack.good).push_back(block);
  }
  return lacks;
}

absl::Status Fill(CheckpointBringer& bringer, const std::string& folder, const Lack& lack) {
  MOTLEY_ASSIGN_OR_RETURN(ResumeFile made, ResumeFile::Make(folder, *lack.file));
  std::string bytes;
  for (const int64_t block : lack.good) {
    bytes.resize(static_cast<size_t>(BytesOfBlock(*lack.file, block)));
    MOTLEY_RETURN_IF_ERROR(
        ReadAt(lack.own, lack.file->name, block * kCheckpointBlockBytes, bytes.data(), static_cast<int64_t>(bytes.size())));
    MOTLEY_RETURN_IF_ERROR(made.Put(block, bytes));
  }
  const absl::Status brought = bringer.Bring(*lack.file, lack.blocks, made);
  // There is one, and it is not whole.
  if (lack.own.get() >= 0 && absl::IsNotFound(brought)) return absl::DataLossError(brought.message());
  MOTLEY_RETURN_IF_ERROR(brought);
  return made.Finish();
}

absl::Status CheckCommand(const StartCommand& command) {
  if (command.ranks.empty()) return absl::InvalidArgumentError("a start without ranks has nothing to go on from");
  const RankAssignment& first = command.ranks.front();
  for (const RankAssignment& rank : command.ranks) {
    if (rank.job == first.job && rank.job_uid == first.job_uid && rank.epoch == first.epoch) continue;
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank.rank, " is of another job than rank ", first.rank));
  }
  return absl::OkStatus();
}

// The job's own, or the one whose weights it begins with.
LocalCheckpoint WhichOf(const StartCommand& command) {
  const RankAssignment& first = command.ranks.front();
  const CheckpointSource& source = command.source;
  if (source.job.empty()) return {first.job, first.job_uid, source.name};
  return {source.job, source.job_uid, source.name};
}

// The small files that exports of the other job have (base_model.h). Without them the weights are whole; ranks say what lacks.
void TakeBase(const std::string& local, const LocalCheckpoint& of, const std::string& name, const RankAssignment& to) {
  if (name.empty()) return;
  absl::StatusOr<BaseModel> base = ReadBase(LocalCheckpoints(local, of.job, of.job_uid), name);
  if (!base.ok()) return;
  (void)KeepBase(NamedBase(*std::move(base)), LocalCheckpoints(local, to.job, to.job_uid), to.epoch.value(), to.job_uid);
}

}  // namespace

absl::Status Stage(const StartCommand& command, const Bringing& bringing) {
  MOTLEY_RETURN_IF_ERROR(CheckCommand(command));
  const RankAssignment& first = command.ranks.front();
  const LocalCheckpoint checkpoint = WhichOf(command);
  MOTLEY_RETURN_IF_ERROR(CheckNames({first.job, first.job_uid, checkpoint.name}));
  MOTLEY_RETURN_IF_ERROR(CheckNames(checkpoint));
  CheckpointBringer bringer(command.source, checkpoint, {first.job, first.epoch}, bringing);
  MOTLEY_ASSIGN_OR_RETURN(const MeantManifest manifest, bringer.FindManifest());
  const std::vector<CheckpointFile>& files = manifest.read.files;
  const std::string folder = ResumeFolder(bringing.local, first.job, first.job_uid, checkpoint.name);
  // What an earlier start went on from: its links keep what the job has deleted since.
  MOTLEY_RETURN_IF_ERROR(RemoveTree(folder.substr(0, folder.rfind('/'))));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<size_t> missing, BeginResumeFolder(folder, manifest.read, manifest.text,
                                                                               OwnFolders(bringing.local, checkpoint, manifest)));
  std::vector<int32_t> ranks;
  for (const RankAssignment& rank : command.ranks) ranks.push_back(rank.rank);
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<Lack> lacks,
                          WhatLacks(folder, files, missing, NeededBlocks(manifest.read, first.ownership, ranks),
                                    command.source.verify, [&] { return bringer.SayAndAsk(); }));
  for (const Lack& lack : lacks) {
    for (const int64_t block : lack.blocks) bringer.Expect(BytesOfBlock(*lack.file, block));
    if (lack.own.get() >= 0) bringer.NoteDamaged(NodeName(), lack.file->name);
  }
  bringer.Say();
  for (const Lack& lack : lacks) MOTLEY_RETURN_IF_ERROR(Fill(bringer, folder, lack));
  if (!command.source.job.empty()) TakeBase(bringing.local, checkpoint, manifest.read.base, first);
  bringer.Say();
  return absl::OkStatus();
}

}  // namespace motley::worker
