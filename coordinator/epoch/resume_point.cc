#include "coordinator/epoch/resume_point.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/adopt_file.h"
#include "common/checkpoint/checkpoint.h"
#include "common/model/parameters.h"
#include "common/weights/weights_folder.h"
#include "coordinator/epoch/other_makers.h"

namespace motley::coordinator {
namespace {

using Folder = motley::CheckpointFolder;  // this namespace has a function of that name

std::string BaseName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// Looks for the newest checkpoint of the job's own, or of one that it adopts.
class Search {
 public:
  Search(const planner::PlannerInput& input, const CheckpointWish& wish) : input_(input), wish_(wish) {}

  absl::StatusOr<FoundCheckpoint> Own() { return Find({}); }
  // Where it has none: of those whose word is among `adopted`.
  absl::StatusOr<FoundCheckpoint> Adopted(const std::set<std::string>& adopted) { return Find(adopted); }
  // Of the last one: nothing was found, and what was there are whole checkpoints of other jobs.
  bool only_foreign() const { return only_foreign_; }
  const std::vector<std::string>& refused() const { return refused_; }  // of the last one
  const std::vector<std::string>& not_one() const { return not_one_; }  // of the last one
  const OtherMakers& makers() const { return makers_; }

 private:
  absl::StatusOr<FoundCheckpoint> Find(const std::set<std::string>& adopted) {
    absl::Status first;
    bool all_foreign = true;
    refused_.clear(), not_one_.clear();
    const auto wanted = [&](const CheckpointManifest& manifest, const std::string& folder) {
      const bool foreign = !IsOwn(wish_.owner, manifest) && !adopted.contains(WordToAdopt(manifest));
      const absl::Status status = foreign ? Foreign(manifest, folder) : CheckFits(manifest, input_, wish_.data_digest, folder);
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
  absl::Status Foreign(const CheckpointManifest& manifest, const std::string& folder) {
    makers_.Add(manifest, folder);
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", folder, " was made by ", MakerOf(manifest), ", which is another job"));
  }

  const planner::PlannerInput& input_;
  const CheckpointWish& wish_;
  bool only_foreign_ = false;
  std::vector<std::string> refused_, not_one_;
  OtherMakers makers_;
};

// Of a job that has none of its own: what the file `adopt` names, or what the job adopted before.
class Adoption {
 public:
  // Fault::kStorage: the file cannot be read now.
  absl::StatusOr<FoundCheckpoint> Find(const CheckpointWish& wish, Search* search) {
    const std::string path = AdoptPath(wish.folder);
    const auto file = ReadAdopt(wish.folder);
    absl::StatusOr<FoundCheckpoint> found = absl::NotFoundError(path);
    if (!file.ok()) {
      if (FaultOf(file.status()) == Fault::kStorage) return file.status();
      why_not_ = std::string(file.status().message());
    } else if (*file && (*file)->empty()) {
      why_not_ = absl::StrCat(path, " is empty");
    } else if (*file) {
      found = search->Adopted(**file);
      if (search->only_foreign()) {
        why_not_ = absl::StrCat(path, " holds ", Quoted(absl::StrJoin(**file, " ")), ", which made none of these");
      }
    }
    if (search->only_foreign() && !wish.owner.adopted.empty()) found = search->Adopted({wish.owner.adopted});
    if (!search->only_foreign()) return found;
    return absl::FailedPreconditionError(absl::StrCat(wish.folder, " holds checkpoints of other jobs alone: ",
                                                      search->makers().Text(), why_not_.empty() ? "" : "; ", why_not_));
  }
  // Why the file adopted nothing; empty: there is none, or it did.
  const std::string& why_not() const { return why_not_; }

 private:
  std::string why_not_;
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
                                                    ModelWords(model), "; the job's has ", ModelWords(of_job), remedy));
}

// The nodes have looked at it. Its config.json is compared here, where it can be read, or by the ranks.
absl::Status PrepareWeights(const planner::PlannerInput& input, Prepared* prepared) {
  const std::string& path = input.config.checkpoint.initial;
  const absl::StatusOr<std::string> folder = FindWeightsFolder(path, OpenAnywhere);
  const bool seen = folder.ok() && !folder->empty();
  const absl::StatusOr<std::string> text = seen ? ReadModelConfig(*folder, OpenAnywhere) : absl::NotFoundError("");
  const auto shape = text.ok() ? ParseHfConfig(*text, kModelConfigName, input.config.training.seq_len) : text.status();
  if (shape.ok() && !SameModel(*shape, input.model, input.config.training.seq_len)) {
    return AnotherModel(path, *shape, input.model, "; leave out [model], and submit the job where the folder can be read");
  }
  prepared->initial = true;
  prepared->resume_from = path;
  prepared->resume_bytes = NumParameters(input.model) * SizeOfBytes(DType::kFloat32);
  return absl::OkStatus();
}

// Where people gave a folder it may be anybody's; a job's id means what that job made, or has adopted and not gone beyond.
absl::StatusOr<FoundCheckpoint> FindInitial(const std::string& folder, const CheckpointWish& wish) {
  const CheckpointOwner& owner = wish.initial_of;
  if (owner.job.empty()) return FindCheckpointAt(folder, wish.damaged);
  absl::StatusOr<FoundCheckpoint> own = FindCheckpointAt(folder, wish.damaged, OnlyOf(owner));
  const bool has_none = absl::IsNotFound(own.status()) || absl::IsFailedPrecondition(own.status());
  if (!has_none || owner.adopted.empty()) return own;
  const auto of_adopted = [&](const CheckpointManifest& manifest, const std::string& at) {
    return WordToAdopt(manifest) == owner.adopted ? absl::OkStatus() : OnlyOf(owner)(manifest, at);
  };
  absl::StatusOr<FoundCheckpoint> adopted = FindCheckpointAt(folder, wish.damaged, of_adopted);
  return adopted.ok() ? adopted : own;
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
void WithoutOne(const planner::PlannerInput& input, const CheckpointWish& wish, const Search& search, const Adoption& adoption,
                const absl::Status& found, Prepared* prepared) {
  const bool empty = absl::IsNotFound(found);
  const std::string why(found.message()), line = AdoptLine(search.makers().FirstWord(), wish.folder);
  if (FaultOf(found) == Fault::kStorage || (!empty && !search.only_foreign())) {
    prepared->status = found;
  } else if (!wish.published.empty()) {
    // Beginning again at step 0 would throw away what the ranks saved. A folder that is not mounted looks empty, too.
    prepared->status = WithFault(
        absl::FailedPreconditionError(absl::StrCat(why, ", but ", wish.published,
                                                   " was published; the coordinator must see checkpoint.folder as the workers do",
                                                   empty ? "" : absl::StrCat("; to go on from what is there, `", line, "`"))),
        Fault::kStorage);
  } else if (!empty && wish.is_new) {
    prepared->status = absl::FailedPreconditionError(
        absl::StrCat(why, "; to go on from ", search.makers().size() == 1 ? "these" : "the first of these", ", `", line,
                     "` and `motley resume ", wish.owner.job.value(), "`; to begin anew, `motley delete ", wish.owner.job.value(),
                     "` and submit under another id or with another checkpoint.folder"));
  } else {
    // One that has begun beside another cluster's job of its id, and has saved nothing yet, begins again.
    prepared->status = PrepareInitial(input, wish, prepared);
    std::vector<std::string> skipped = empty ? search.not_one() : search.refused();
    if (!adoption.why_not().empty()) skipped.push_back(adoption.why_not());
    prepared->skipped.insert(prepared->skipped.begin(), skipped.begin(), skipped.end());
  }
}

}  // namespace

absl::Status CheckFits(const CheckpointManifest& manifest, const planner::PlannerInput& input, const std::string& digest,
                       const std::string& folder) {
  if (!SameModel(manifest.model, input.model, input.config.training.seq_len))
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " is of another model"));
  if (manifest.data_digest != digest)
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " was trained on other data"));
  if (manifest.seed != input.config.training.seed)
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " has another seed"));
  return absl::OkStatus();
}

absl::Status CheckGiven(Epoch epoch, const JobId& job) {
  if (epoch.value() < kFirstEpochNobodyGives) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the next generation of job ", job.value(), " would be ", epoch.value(),
                   ", and names of checkpoints hold numbers below ", kFirstEpochNobodyGives,
                   " only; go on as another job: copy its newest checkpoint into that one's folder and adopt it, or give "
                   "it as checkpoint.initial"));
}

absl::Status PrepareInitial(const planner::PlannerInput& input, const CheckpointWish& wish, Prepared* prepared) {
  if (input.config.checkpoint.initial.empty()) return absl::OkStatus();
  if (wish.at_initial != nullptr) *wish.at_initial = true;
  if (!wish.initial_digest.empty()) return PrepareWeights(input, prepared);
  absl::StatusOr<FoundCheckpoint> found = FindInitial(input.config.checkpoint.initial, wish);
  if (!found.ok()) {
    const absl::Status named(found.status().code(), absl::StrCat("checkpoint.initial: ", std::string(found.status().message())));
    const bool another_time = FaultOf(found.status()) == Fault::kStorage;
    return another_time ? WithFault(named, Fault::kStorage) : named;
  }
  const CheckpointManifest& manifest = found->manifest;
  if (!SameModel(manifest.model, input.model, input.config.training.seq_len)) {
    return AnotherModel(found->folder, manifest.model, input.model, "");
  }
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

Prepared FindResumePoint(const planner::PlannerInput& input, const CheckpointWish& wish) {
  Prepared prepared;
  prepared.epoch = AboveNames(input.epoch, wish);
  Search search(input, wish);
  Adoption adoption;
  absl::StatusOr<FoundCheckpoint> found = search.Own();
  if (search.only_foreign()) found = adoption.Find(wish, &search);
  if (found.ok()) {
    prepared.resume_from = found->folder;
    prepared.start_step = found->manifest.step;
    prepared.epoch = AboveManifest(prepared.epoch, found->manifest, wish.owner);
    if (!IsOwn(wish.owner, found->manifest)) prepared.adopted = WordToAdopt(found->manifest);
    for (const CheckpointFile& file : found->manifest.files) prepared.resume_bytes += file.bytes;
    prepared.skipped = std::move(found->skipped);
    prepared.unjudged = std::move(found->unjudged);
    if (!adoption.why_not().empty()) prepared.skipped.push_back(adoption.why_not());
    if (std::string gone = WhatIsGone(wish, found->folder); !gone.empty()) prepared.skipped.push_back(std::move(gone));
    if (wish.is_new) prepared.status = CheckStepsAreLeft(found->manifest, input.config.training.steps, found->folder);
  } else {
    WithoutOne(input, wish, search, adoption, found.status(), &prepared);
  }
  if (prepared.status.ok()) prepared.status = CheckGiven(prepared.epoch, wish.owner.job);
  return prepared;
}

}  // namespace motley::coordinator
