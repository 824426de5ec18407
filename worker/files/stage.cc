#include "worker/files/stage.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/needed_blocks.h"
#include "common/checkpoint/resume_folder.h"
#include "worker/files/checkpoint_file.h"
#include "worker/files/files_reader.h"
#include "worker/files/job_folder.h"

namespace motley::worker {
namespace {

// Who has many readers before it is asked again and again for some minutes: that is how long they may take.
constexpr int kMostTries = 300;
constexpr absl::Duration kTryPause = absl::Seconds(1);
constexpr absl::Duration kProgressPause = absl::Seconds(1);

struct Manifest {
  std::string text;
  CheckpointManifest read;
};

// Of what came from it.
absl::Status SaidOf(const CheckpointHolder& holder, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("node ", holder.node.value(), ": ", std::string(status.message())));
}

class Stager {
 public:
  Stager(const StartCommand& command, const Staging& staging)
      : source_(command.source),
        first_(command.ranks.front()),
        staging_(staging),
        checkpoint_{first_.job, first_.job_uid, source_.name},
        reading_{staging.identity, first_.job, source_.name} {
    reading_.stopped = staging.stopped;
    for (const RankAssignment& rank : command.ranks) ranks_.push_back(rank.rank);
    report_.job = first_.job;
    report_.epoch = first_.epoch;
  }

  absl::Status Run() {
    MOTLEY_RETURN_IF_ERROR(CheckNames(checkpoint_));
    MOTLEY_ASSIGN_OR_RETURN(const Manifest manifest, FindManifest());
    MOTLEY_RETURN_IF_ERROR(CheckIsMeant(manifest.read));
    const std::string folder = ResumeFolder(staging_.local, first_.job, first_.job_uid, source_.name);
    // What an earlier start went on from: its links keep what the job has deleted since.
    MOTLEY_RETURN_IF_ERROR(RemoveTree(folder.substr(0, folder.rfind('/'))));
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<size_t> lacking,
                            BeginResumeFolder(folder, manifest.read, manifest.text, OwnFolders()));
    const std::vector<std::vector<int64_t>> needed = NeededBlocks(manifest.read, first_.ownership, ranks_);
    for (const size_t index : lacking) {
      for (const int64_t block : needed[index]) report_.bytes += BytesOf(manifest.read.files[index], block);
    }
    Say();
    for (const size_t index : lacking) {
      const CheckpointFile& file = manifest.read.files[index];
      MOTLEY_ASSIGN_OR_RETURN(ResumeFile made, ResumeFile::Make(folder, file));
      MOTLEY_RETURN_IF_ERROR(Bring(file, needed[index], made));
      MOTLEY_RETURN_IF_ERROR(made.Finish());
    }
    Say();
    return absl::OkStatus();
  }

 private:
  static int64_t BytesOf(const CheckpointFile& file, int64_t block) {
    return std::min(kCheckpointBlockBytes, file.bytes - block * kCheckpointBlockBytes);
  }

  void Say() {
    said_at_ = clock_.Now();
    staging_.progress(report_);
  }

  absl::StatusOr<Manifest> Parse(std::string text) const {
    Manifest manifest = {std::move(text), {}};
    const std::string name = absl::StrCat(kManifestName, " of ", source_.name);
    MOTLEY_ASSIGN_OR_RETURN(manifest.read, ManifestFromJson(manifest.text, name));
    if (ManifestDigest(manifest.text) == source_.manifest_digest) return manifest;
    return absl::FailedPreconditionError(absl::StrCat(name, " is another one than the job goes on from"));
  }

  absl::StatusOr<Manifest> OwnManifest() const {
    MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor file, OpenCheckpointFile(staging_.local, checkpoint_, ""));
    MOTLEY_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(file, kManifestName, kMostManifestBytes));
    return Parse(std::move(text));
  }

  std::vector<std::string> OwnFolders() const {
    const std::string checkpoints = LocalCheckpoints(staging_.local, first_.job, first_.job_uid);
    std::vector<std::string> folders = {absl::StrCat(checkpoints, "/", UnpublishedName(checkpoint_))};
    // Two stores may have given one name: the files beside another manifest are not of this checkpoint.
    if (!own_is_another_) folders.insert(folders.begin(), absl::StrCat(checkpoints, "/", source_.name));
    return folders;
  }

  absl::StatusOr<Manifest> FindManifest() {
    absl::StatusOr<Manifest> found = OwnManifest();
    if (found.ok()) return found;
    std::vector<absl::Status> said;
    own_is_another_ = absl::IsFailedPrecondition(found.status());
    if (!absl::IsNotFound(found.status()))
      said.push_back(absl::Status(found.status().code(), absl::StrCat("this node: ", std::string(found.status().message()))));
    for (const CheckpointHolder& holder : source_.holders) {
      if (!holder.manifest || holder.address.empty()) continue;
      std::string text;
      const absl::Status read = ReadPatiently(holder, "", {0}, [&](int64_t, std::string_view bytes) {
        text = bytes;
        return absl::OkStatus();
      });
      if (absl::IsCancelled(read)) return read;
      found = read.ok() ? Parse(std::move(text)) : read;
      if (found.ok()) return found;
      said.push_back(read.ok() ? SaidOf(holder, found.status()) : read);
    }
    return NotBrought(kManifestName, said);
  }

  // By its digest it is the one that the coordinator means; this is what it says of itself.
  absl::Status CheckIsMeant(const CheckpointManifest& manifest) const {
    const std::optional<CheckpointFolder> folder = ParseCheckpointFolder("", source_.name);
    const std::string name = absl::StrCat(kManifestName, " of ", source_.name);
    if (!folder || manifest.job_uid != first_.job_uid || manifest.step != folder->step || manifest.epoch != folder->epoch) {
      return absl::FailedPreconditionError(absl::StrCat(name, " is of step ", manifest.step, " and generation ", manifest.epoch,
                                                        " of the job with the uid '", manifest.job_uid.value(), "', not of '",
                                                        first_.job_uid.value(), "'"));
    }
    if (!manifest.is_local()) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, " has format ", manifest.format_version, ", which no checkpoint on the nodes' disks has"));
    }
    for (const CheckpointFile& file : manifest.files) {
      if (const absl::Status named = CheckRankFile(file.name); !named.ok()) {
        return absl::DataLossError(absl::StrCat(name, ": ", std::string(named.message())));
      }
    }
    return absl::OkStatus();
  }

  // The blocks that are left of `blocks`, from one holder after the other.
  absl::Status Bring(const CheckpointFile& file, std::vector<int64_t> blocks, ResumeFile& into) {
    std::vector<absl::Status> said;
    absl::Status put;
    const auto take = [&](int64_t block, std::string_view bytes) {
      put = into.Put(block, bytes);
      if (!put.ok()) return put;
      std::erase(blocks, block);
      report_.bytes_here += BytesOf(file, block);
      if (clock_.Now() - said_at_ >= kProgressPause) Say();
      return put;
    };
    for (const CheckpointHolder& holder : source_.holders) {
      if (blocks.empty()) break;
      if (holder.address.empty() || !absl::c_linear_search(holder.files, file.name)) continue;
      put = absl::OkStatus();
      const absl::Status read = ReadPatiently(holder, file.name, blocks, take);
      if (read.ok()) break;
      // What cannot be written here is not the holder's fault.
      if (absl::IsCancelled(read) || (!put.ok() && !absl::IsDataLoss(put))) return read;
      said.push_back(put.ok() ? read : SaidOf(holder, read));
    }
    return blocks.empty() ? absl::OkStatus() : NotBrought(file.name, said);
  }

  absl::Status ReadPatiently(const CheckpointHolder& holder, const std::string& file, const std::vector<int64_t>& blocks,
                             const std::function<absl::Status(int64_t, std::string_view)>& take) {
    for (int tries = 1;; ++tries) {
      if (staging_.stopped()) return absl::CancelledError("stopped");
      const std::vector<int64_t> left = blocks;  // `take` changes it
      bool taken = true;                         // a disk that is full here says the same as a holder with many readers
      const absl::Status read = ReadBlocks(holder, reading_, file, left, [&](int64_t block, std::string_view bytes) {
        const absl::Status status = take(block, bytes);
        taken = status.ok();
        return status;
      });
      if (!taken || !absl::IsResourceExhausted(read) || tries == kMostTries) return read;
      Say();
      staging_.pause(kTryPause);
    }
  }

  absl::Status NotBrought(const std::string& file, const std::vector<absl::Status>& said) const {
    const std::string what = absl::StrCat(file, " of ", source_.name, " could not be brought: ");
    if (said.empty()) return absl::NotFoundError(absl::StrCat(what, "no node that is here has it"));
    bool gone = true, damaged = false;
    for (const absl::Status& status : said) {
      damaged |= absl::IsDataLoss(status);
      gone &= absl::IsDataLoss(status) || absl::IsNotFound(status) || absl::IsOutOfRange(status) ||
              absl::IsFailedPrecondition(status);
    }
    const absl::StatusCode code = !gone     ? absl::StatusCode::kUnavailable
                                  : damaged ? absl::StatusCode::kDataLoss
                                            : absl::StatusCode::kNotFound;
    return absl::Status(code, absl::StrCat(what, absl::StrJoin(said, "; ", [](std::string* out, const absl::Status& status) {
                                             out->append(std::string(status.message()));
                                           })));
  }

  const CheckpointSource& source_;
  const RankAssignment& first_;
  const Staging& staging_;
  const LocalCheckpoint checkpoint_;
  FilesReading reading_;
  std::vector<int32_t> ranks_;
  FetchReport report_;
  const SystemClock clock_;
  absl::Duration said_at_;
  bool own_is_another_ = false;  // the manifest that this node has by the name
};

}  // namespace

absl::Status Stage(const StartCommand& command, const Staging& staging) {
  if (command.ranks.empty()) return absl::InvalidArgumentError("a start without ranks has nothing to go on from");
  const RankAssignment& first = command.ranks.front();
  for (const RankAssignment& rank : command.ranks) {
    if (rank.job == first.job && rank.job_uid == first.job_uid && rank.epoch == first.epoch) continue;
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank.rank, " is of another job than rank ", first.rank));
  }
  return Stager(command, staging).Run();
}

}  // namespace motley::worker
