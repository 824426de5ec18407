#include "coordinator/epoch/resume_point.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/model/parameters.h"
#include "common/weights/weights_folder.h"

namespace motley::coordinator {
namespace {

using Folder = motley::CheckpointFolder;  // this namespace has a function of that name

std::string BaseName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// A checkpoint of another model, data or seed in the job's own folder was put there by hand: training on would be wrong.
absl::Status CheckFits(const CheckpointManifest& manifest, const planner::PlannerInput& input, const std::string& digest,
                       const std::string& folder) {
  if (!(manifest.model == input.model))
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " is of another model"));
  if (manifest.data_digest != digest)
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " was trained on other data"));
  if (manifest.seed != input.config.training.seed)
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " has another seed"));
  return absl::OkStatus();
}

// A checkpoint folder belongs to the job that made it. Whoever wants another job to go on from it says so: a file `adopt` in that
// job's folder holds the uid that made the checkpoints. An id alone says it of those that have no uid.
absl::StatusOr<std::set<std::string>> ReadAdopted(const std::string& path) {
  constexpr size_t kMostBytes = 4096;
  const absl::StatusOr<FileDescriptor> file = OpenForRead(path, SymbolicLinks::kRefuse);
  if (absl::IsNotFound(file.status())) return std::set<std::string>();
  MOTLEY_RETURN_IF_ERROR(file.status());
  std::string text;
  MOTLEY_RETURN_IF_ERROR(ForEachBlock(*file, path, [&](std::string_view block) -> absl::Status {
    text.append(block);
    if (text.size() <= kMostBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, " is larger than ", kMostBytes, " bytes"));
  }));
  const std::set<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  return words;
}

std::string WordToAdopt(const CheckpointManifest& manifest) {
  return manifest.job_uid.empty() ? manifest.job : manifest.job_uid.value();
}

// Looks for the newest checkpoint of the job's own, or of one that it adopts.
class Search {
 public:
  Search(const planner::PlannerInput& input, const CheckpointWish& wish) : input_(input), wish_(wish) {}

  absl::StatusOr<FoundCheckpoint> Own() { return Find({}, ""); }
  // Where it has none: of those whose word is among `adopted`. `why_none`: why that could not be read, or empty.
  absl::StatusOr<FoundCheckpoint> Adopted(const std::set<std::string>& adopted, const std::string& why_none) {
    const std::string path = absl::StrCat(wish_.folder, "/adopt");
    return Find(adopted, why_none.empty() ? path : absl::StrCat(path, " (", why_none, ")"));
  }
  // Of the last one: nothing was found, and what was there are whole checkpoints of other jobs.
  bool only_foreign() const { return only_foreign_; }
  const std::vector<std::string>& refused() const { return refused_; }  // of the last one
  const std::vector<std::string>& not_one() const { return not_one_; }  // of the last one

 private:
  absl::StatusOr<FoundCheckpoint> Find(const std::set<std::string>& adopted, const std::string& adopt_path) {
    absl::Status first;
    bool all_foreign = true;
    refused_.clear(), not_one_.clear();
    const auto wanted = [&](const CheckpointManifest& manifest, const std::string& folder) {
      const bool foreign = !IsOwn(wish_.owner, manifest) && !adopted.contains(WordToAdopt(manifest));
      const absl::Status status = foreign ? Foreign(manifest, folder, adopt_path) : CheckFitsAndName(manifest, folder);
      if (status.ok()) return status;
      if (first.ok()) first = status;
      all_foreign &= foreign;
      refused_.push_back(std::string(status.message()));
      return status;
    };
    absl::StatusOr<FoundCheckpoint> found = FindNewestCheckpoint(wish_.folder, wish_.damaged, wanted, &not_one_);
    const bool none_wanted = !found.ok() && found.status() == first;
    only_foreign_ = none_wanted && all_foreign;
    // The newest one's reason says nothing of an own one that cannot be taken.
    return none_wanted && !all_foreign ? absl::FailedPreconditionError(absl::StrJoin(refused_, "; ")) : found;
  }
  absl::Status Foreign(const CheckpointManifest& manifest, const std::string& folder, const std::string& adopt_path) const {
    const std::string made = absl::StrCat("checkpoint ", folder, " was made by ", MakerOf(manifest), ", which is another job");
    if (adopt_path.empty()) return absl::FailedPreconditionError(made);
    return absl::FailedPreconditionError(absl::StrCat(
        made, "; to go on from it, write ", Quoted(WordToAdopt(manifest)), " into ", adopt_path, " and `motley resume ",
        wish_.owner.job.value(), "`; to begin anew, submit under another id or with another checkpoint.folder"));
  }
  absl::Status CheckFitsAndName(const CheckpointManifest& manifest, const std::string& folder) const {
    const std::optional<Folder> named = ParseCheckpointFolder(wish_.folder, BaseName(folder));
    if (named && IsRenamed(*named, manifest)) {
      return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " was renamed, generation ", manifest.epoch,
                                                        " wrote it; call it ",
                                                        CheckpointFolderName(manifest.step, manifest.epoch), " again"));
    }
    return CheckFits(manifest, input_, wish_.data_digest, folder);
  }

  const planner::PlannerInput& input_;
  const CheckpointWish& wish_;
  bool only_foreign_ = false;
  std::vector<std::string> refused_, not_one_;
};

// Whether a name that anybody may give holds what it promises: a whole checkpoint of this job and of this generation.
bool IsProven(const Folder& folder, const CheckpointOwner& owner) {
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder.path);
  return manifest.ok() && folder.published && IsOwn(owner, *manifest) && !IsRenamed(folder, *manifest) &&
         VerifyStructure(folder.path, *manifest).ok();
}

// Above those of all names, whatever is under them: what the epoch publishes has a name of its own then. A store that is new, or
// was restored, begins below them.
Epoch AboveNames(Epoch epoch, const CheckpointWish& wish) {
  const auto folders = ListCheckpointFolders(wish.folder);
  for (size_t i = 0; folders.ok() && i < folders->size(); ++i) {
    const Folder& folder = (*folders)[i];
    if (folder.epoch < epoch.value()) break;  // the newest come first
    if (folder.epoch < kFirstEpochToProve || IsProven(folder, wish.owner)) epoch = Epoch(folder.epoch + 1);
  }
  return epoch;
}

// Above the one that wrote what is gone on from: an older build's name has none. The number comes from a file, so one that nobody
// gives is not followed, and one of another job only as far as any name is.
Epoch AboveManifest(Epoch epoch, const CheckpointManifest& manifest, const CheckpointOwner& owner) {
  const int64_t limit = IsOwn(owner, manifest) ? kFirstEpochNobodyGives : kFirstEpochToProve;
  return manifest.epoch < limit ? std::max(epoch, Epoch(manifest.epoch + 1)) : epoch;
}

// Readers would not take what is published under such a number.
absl::Status CheckGiven(Epoch epoch, const JobId& job) {
  if (epoch.value() < kFirstEpochNobodyGives) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the next generation of job ", job.value(), " would be ", epoch.value(),
                   ", and names of checkpoints hold numbers below ", kFirstEpochNobodyGives,
                   " only; go on as another job: copy its newest checkpoint into that one's folder and adopt it, or give "
                   "it as checkpoint.initial"));
}

// A sentence where what was published is not there any more, and something older is gone on from; else empty.
std::string WhatIsGone(const CheckpointWish& wish, const std::string& used) {
  const std::optional<Folder> was = ParseCheckpointFolder(wish.folder, BaseName(wish.published));
  const std::optional<Folder> is = ParseCheckpointFolder(wish.folder, BaseName(used));
  const auto place = [](const Folder& folder) { return std::tie(folder.epoch, folder.step); };
  if (!was || !is || place(*was) <= place(*is)) return "";
  std::error_code error;
  if (std::filesystem::exists(wish.published, error) || error) return "";
  return absl::StrCat("checkpoint ", wish.published, ", which was published, is gone: somebody else deleted or renamed it");
}

absl::Status AnotherModel(const std::string& folder, const ModelShape& model, const ModelShape& of_job, const char* remedy) {
  return absl::FailedPreconditionError(absl::StrCat("checkpoint.initial ", folder, " is of another model, with ",
                                                    NumParameters(model), " parameters; the job's has ", NumParameters(of_job),
                                                    remedy));
}

// The nodes have looked at it. Its config.json is compared here, where it can be read, or by the ranks.
absl::Status PrepareWeights(const planner::PlannerInput& input, Prepared* prepared) {
  const std::string& path = input.config.checkpoint.initial;
  const absl::StatusOr<std::string> folder = FindWeightsFolder(path, OpenAnywhere);
  const bool seen = folder.ok() && !folder->empty();
  const absl::StatusOr<std::string> text = seen ? ReadModelConfig(*folder, OpenAnywhere) : absl::NotFoundError("");
  const auto shape = text.ok() ? ParseHfConfig(*text, kModelConfigName, input.config.training.seq_len) : text.status();
  if (shape.ok() && !(*shape == input.model)) {
    return AnotherModel(path, *shape, input.model, "; leave out [model], and submit the job where the folder can be read");
  }
  prepared->initial = true;
  prepared->resume_from = path;
  prepared->resume_bytes = NumParameters(input.model) * SizeOfBytes(DType::kFloat32);
  return absl::OkStatus();
}

// The job begins: with the weights of another one, where that is asked for.
absl::Status PrepareInitial(const planner::PlannerInput& input, const CheckpointWish& wish, Prepared* prepared) {
  const std::string& folder = input.config.checkpoint.initial;
  if (folder.empty()) return absl::OkStatus();
  if (!wish.initial_digest.empty()) return PrepareWeights(input, prepared);
  absl::StatusOr<FoundCheckpoint> found = FindCheckpointAt(folder, wish.damaged);
  if (!found.ok() && FaultOf(found.status()) == Fault::kStorage) return found.status();  // another time, perhaps
  if (!found.ok()) {
    return absl::Status(found.status().code(), absl::StrCat("checkpoint.initial: ", std::string(found.status().message())));
  }
  const CheckpointManifest& manifest = found->manifest;
  if (!(manifest.model == input.model)) return AnotherModel(found->folder, manifest.model, input.model, "");
  MOTLEY_ASSIGN_OR_RETURN(const DType dtype, ParseDType(input.config.training.dtype));
  if (manifest.dtype != dtype) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint.initial ", found->folder, " holds ",
                                                      std::string(DTypeName(manifest.dtype)), ", training.dtype is ",
                                                      input.config.training.dtype));
  }
  prepared->initial = true;
  prepared->resume_from = found->folder;
  for (const CheckpointFile& file : manifest.files) prepared->resume_bytes += file.bytes;
  prepared->skipped = std::move(found->skipped);
  return absl::OkStatus();
}

// A new job that finds its last step done would succeed without having made one: the steps are another job's.
absl::Status CheckStepsAreLeft(const CheckpointManifest& manifest, int64_t steps, const std::string& folder) {
  if (manifest.step < steps) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("checkpoint ", folder, " is at step ", manifest.step, " and training.steps is ", steps,
                   ": no step is left to make. It was made by an earlier ", MakerOf(manifest),
                   "; give more steps, or submit the job under another name or with another checkpoint.folder"));
}

// Nothing in the folder can be gone on from; `found` says why.
void WithoutOne(const planner::PlannerInput& input, const CheckpointWish& wish, const Search& search, const absl::Status& found,
                Prepared* prepared) {
  const bool empty = absl::IsNotFound(found);
  if (!empty && !search.only_foreign()) {
    prepared->status = found;
  } else if (!wish.published.empty()) {
    // Beginning again at step 0 would throw away what the ranks saved. A folder that is not mounted looks empty, too.
    prepared->status = WithFault(absl::FailedPreconditionError(absl::StrCat(
                                     std::string(found.message()), ", but ", wish.published,
                                     " was published; the coordinator must see checkpoint.folder as the workers do")),
                                 Fault::kStorage);
  } else if (!empty && wish.is_new) {
    prepared->status = found;
  } else {
    // One that has begun beside another cluster's job of its id, and has saved nothing yet, begins again.
    prepared->status = PrepareInitial(input, wish, prepared);
    const std::vector<std::string>& skipped = empty ? search.not_one() : search.refused();
    prepared->skipped.insert(prepared->skipped.begin(), skipped.begin(), skipped.end());
  }
}

}  // namespace

Prepared FindResumePoint(const planner::PlannerInput& input, const CheckpointWish& wish) {
  Prepared prepared;
  prepared.epoch = AboveNames(input.epoch, wish);
  Search search(input, wish);
  absl::StatusOr<FoundCheckpoint> found = search.Own();
  if (search.only_foreign()) {
    const auto adopted = ReadAdopted(absl::StrCat(wish.folder, "/adopt"));
    if (!adopted.ok() && FaultOf(adopted.status()) == Fault::kStorage) {
      prepared.status = adopted.status();
      return prepared;
    }
    found = search.Adopted(adopted.ok() ? *adopted : std::set<std::string>(), std::string(adopted.status().message()));
  }
  if (found.ok()) {
    prepared.resume_from = found->folder;
    prepared.start_step = found->manifest.step;
    prepared.epoch = AboveManifest(prepared.epoch, found->manifest, wish.owner);
    for (const CheckpointFile& file : found->manifest.files) prepared.resume_bytes += file.bytes;
    prepared.skipped = std::move(found->skipped);
    prepared.unjudged = std::move(found->unjudged);
    if (std::string gone = WhatIsGone(wish, found->folder); !gone.empty()) prepared.skipped.push_back(std::move(gone));
    if (wish.is_new) prepared.status = CheckStepsAreLeft(found->manifest, input.config.training.steps, found->folder);
  } else {
    WithoutOne(input, wish, search, found.status(), &prepared);
  }
  if (prepared.status.ok()) prepared.status = CheckGiven(prepared.epoch, wish.owner.job);
  return prepared;
}

}  // namespace motley::coordinator
