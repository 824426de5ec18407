#include "worker/engine/local_saver.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/local_checkpoint.h"
#include "common/checkpoint/mark_file.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/save_verdict.h"

namespace motley::engine {
namespace {

// In place of the token by which ranks see that their folder is one.
constexpr char kOwnDisk[] = "own-disk";

const std::string& RootOf(const LocalSave& save) { return save.assignment.config.checkpoint.folder; }

std::string TemporaryOf(const LocalSave& save) {
  return absl::StrCat(RootOf(save), "/",
                      TemporaryCheckpointFolderName(save.manifest.step, save.manifest.epoch, save.fence.owner.uid));
}

std::string OwnFile(const LocalSave& save) { return absl::StrCat("rank-", save.assignment.rank, ".bin"); }

std::string WriteOwnFile(const LocalSave& save) {
  absl::StatusOr<CheckpointFile> file =
      WriteCheckpointFile(TemporaryOf(save), OwnFile(save), save.manifest.dtype, save.state.Pieces());
  if (file.ok()) file->node = NodeOf(save.assignment.device.id).value();
  return EntryMessage(file, kOwnDisk);
}

// A disk that is full is its node's alone, unlike a folder that all share.
absl::Status FirstError(const std::vector<std::string>& entries, const std::vector<DeviceId>& devices) {
  for (size_t r = 0; r < entries.size(); ++r) {
    absl::Status error = ErrorOf(entries[r], devices[r]);
    if (!error.ok()) return WithBlamedDevice(std::move(error), devices[r].value());
  }
  return absl::OkStatus();
}

// What was written and will not be published. Each rank removes its own alone: another one of the node may be at the next try.
void ForgetOwn(const LocalSave& save) {
  const std::string temporary = TemporaryOf(save);
  std::vector<std::string> own = {OwnFile(save)};
  if (IsFirstOfNode(save.assignment)) own.insert(own.end(), {kManifestName, kMarkName});
  for (const std::string& name : own) (void)::unlink(absl::StrCat(temporary, "/", name).c_str());
  (void)::rmdir(temporary.c_str());  // the last one's
}

// What rank 0 tells the others of what was published.
struct Word {
  std::string mark, base, digest;
};
std::string WordText(const Word& word) { return absl::StrCat("ok ", word.mark, " ", word.digest, " ", word.base); }
absl::StatusOr<Word> WordOf(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  if (parts.size() != 4) return absl::InternalError(absl::StrCat("rank 0 says of a checkpoint: ", text));
  return Word{parts[1], parts[3], parts[2]};
}

// The base goes beside the manifest, on each node.
absl::StatusOr<std::string> KeepBase(const LocalSave& save, RankHost& host) {
  return save.state.base().KeepOrSay(RootOf(save), save.manifest.epoch, save.manifest.job_uid,
                                     [&](const std::string& text) { host.OnLog(text); });
}

// Rank 0's part. Returns what the others need to do the same.
absl::StatusOr<Word> PublishFirst(LocalSave& save, RankHost& host, std::string* folder) {
  MOTLEY_ASSIGN_OR_RETURN(save.manifest.base, KeepBase(save, host));
  const std::string text = ManifestToJson(save.manifest);
  Word word{"", save.manifest.base, ManifestDigest(text)};
  const std::string purpose = absl::StrCat("publish ", CheckpointFolderName(save.manifest.step, save.manifest.epoch));
  MOTLEY_ASSIGN_OR_RETURN(word.mark, host.AskForMark(save.manifest.step, purpose, word.digest));
  MOTLEY_ASSIGN_OR_RETURN(*folder, PublishLocalCheckpoint(RootOf(save), save.manifest, text, word.mark, save.fence));
  return word;
}

// The first rank's of another node.
absl::Status PublishToo(LocalSave& save, const Word& word, RankHost& host) {
  // Without its base here an export finds it on another node.
  (void)KeepBase(save, host);
  save.manifest.base = word.base;
  const std::string text = ManifestToJson(save.manifest);
  if (ManifestDigest(text) != word.digest) return absl::InternalError("this node's manifest is not rank 0's");
  return PublishLocalCheckpoint(RootOf(save), save.manifest, text, word.mark, save.fence).status();
}

}  // namespace

bool IsFirstOfNode(const RankAssignment& assignment) {
  const NodeName own = NodeOf(assignment.devices[static_cast<size_t>(assignment.rank)]);
  size_t first = 0;
  while (NodeOf(assignment.devices[first]) != own) ++first;
  return first == static_cast<size_t>(assignment.rank);
}

absl::Status SaveOnNodes(const LocalSave& given, Communicator& communicator, RankHost& host) {
  const int64_t begin_ns = MonotonicNs();
  LocalSave save = given;
  const std::vector<DeviceId>& devices = save.assignment.devices;
  const absl::StatusOr<std::vector<std::string>> entries = communicator.GatherStrings(WriteOwnFile(save));
  if (absl::Status written = entries.ok() ? FirstError(*entries, devices) : entries.status(); !written.ok()) {
    ForgetOwn(save);
    return written;
  }
  int64_t bytes = 0;
  for (const std::string& entry : *entries) {
    MOTLEY_ASSIGN_OR_RETURN(CheckpointFile file, FileOf(entry));
    bytes += file.bytes;
    save.manifest.files.push_back(std::move(file));
  }
  save.manifest.format_version = kLocalCheckpointFormat;
  std::string said = "ok", folder;
  if (save.assignment.rank == 0) {
    const absl::StatusOr<Word> word = PublishFirst(save, host, &folder);
    said = word.ok() ? WordText(*word) : ErrorMessage(word.status());
  }
  // Who does not hear it keeps its file: rank 0 may have published.
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> words, communicator.GatherStrings(said));
  if (absl::Status published = ErrorOf(words[0], devices[0]); !published.ok()) {
    ForgetOwn(save);
    return published;
  }
  MOTLEY_ASSIGN_OR_RETURN(const Word word, WordOf(words[0]));
  if (save.assignment.rank == 0) {
    host.OnCheckpoint(save.manifest.step, folder, bytes, (MonotonicNs() - begin_ns) * 1e-9);
  } else if (IsFirstOfNode(save.assignment)) {
    const absl::Status published = PublishToo(save, word, host);
    if (!published.ok()) {
      host.OnLog(
          absl::StrCat("checkpoint of step ", save.manifest.step, " has no name on this node's disk: ", published.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
