#include "coordinator/epoch/local_resume.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"

namespace motley::coordinator {
namespace {

// Between what is adopted and the first generation of this store's, for those that absent disks have: numbers of the two must not
// meet in one folder.
constexpr int64_t kGenerationsUnseen = 1000;

// Its manifest is believed: it has a mark. What the job trains with may have been changed by hand in the store.
absl::Status CheckFitsJob(const HeldCheckpoint& head, const planner::PlannerInput& input, const CheckpointWish& wish) {
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape model, ParseHfConfig(head.model, head.name));
  CheckpointManifest manifest;
  manifest.model = model;
  manifest.data_digest = head.data_digest;
  manifest.seed = head.seed;
  return CheckFits(manifest, input, wish.data_digest, head.name);
}

absl::Status NotWhole(const UnitedCheckpoint& checkpoint) {
  return WithFault(
      absl::UnavailableError(absl::StrCat("checkpoint ", checkpoint.head.name,
                                          " is not whole on the nodes that are here, which lack ", WhatLacks(checkpoint))),
      Fault::kStorage);
}

absl::Status WhyNot(const UnitedCheckpoint& checkpoint, const planner::PlannerInput& input, const CheckpointWish& wish) {
  const HeldCheckpoint& head = checkpoint.head;
  if (wish.go_back.GaveUp(head.epoch, head.step)) {
    return absl::CancelledError(
        absl::StrCat("checkpoint ", head.name, " is behind step ", wish.go_back.step, ", to which the job was told to go back"));
  }
  if (wish.damaged.contains(head.name)) return absl::DataLossError(absl::StrCat("checkpoint ", head.name, " is damaged"));
  if (!checkpoint.whole()) return NotWhole(checkpoint);
  return CheckFitsJob(head, input, wish);
}

// Ranks cannot save on such a node.
absl::Status CheckKeepers(const planner::PlannerInput& input, const Holdings& held) {
  std::vector<std::string> why;
  std::set<NodeName> seen;
  for (const DeviceDescription& device : input.devices) {
    const NodeName node = NodeOf(device.id);
    if (held.offers.contains(node) || !seen.insert(node).second) continue;
    const auto refusal = held.refusals.find(node);
    why.push_back(absl::StrCat("node ", node.value(), ": ",
                               refusal == held.refusals.end() ? "it was not here when it was asked" : refusal->second));
  }
  if (why.empty()) return absl::OkStatus();
  return WithFault(
      absl::UnavailableError(absl::StrCat("checkpoints cannot be kept on the nodes' disks: ", absl::StrJoin(why, "; "))),
      Fault::kStorage);
}

// Why a job cannot begin with this one's weights.
absl::Status WhyNotInitial(const UnitedCheckpoint& checkpoint, const planner::PlannerInput& input, const CheckpointWish& wish) {
  const HeldCheckpoint& head = checkpoint.head;
  if (wish.damaged.contains(head.name)) return absl::DataLossError(absl::StrCat("checkpoint ", head.name, " is damaged"));
  if (!checkpoint.whole()) return NotWhole(checkpoint);
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape model, ParseHfConfig(head.model, head.name));
  if (!SameModel(model, input.model, input.config.training.seq_len))
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", head.name, " is of another model"));
  if (head.dtype != input.config.training.dtype) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", head.name, " holds ", head.dtype, ", training.dtype is ", input.config.training.dtype));
  }
  return absl::OkStatus();
}

// With the newest weights of another job, which lie on the nodes' disks, too.
absl::Status PrepareInitialOfJob(const planner::PlannerInput& input, const CheckpointWish& wish, Prepared* prepared) {
  std::vector<std::string> skipped;
  bool some_lack = wish.held_of_initial.checkpoints.empty();
  for (const UnitedCheckpoint& checkpoint : wish.held_of_initial.checkpoints) {
    if (const absl::Status why_not = WhyNotInitial(checkpoint, input, wish); !why_not.ok()) {
      some_lack |= FaultOf(why_not) == Fault::kStorage;
      skipped.push_back(CleanLine(std::string(why_not.message())));
      continue;
    }
    prepared->initial = true;
    prepared->resume_from = checkpoint.head.name;
    for (const HeldFile& file : checkpoint.head.files) prepared->resume_bytes += file.bytes;
    prepared->source = checkpoint;
    prepared->skipped = std::move(skipped);
    return absl::OkStatus();
  }
  if (skipped.empty()) skipped.push_back("no node that is here has one");
  const absl::Status none =
      absl::FailedPreconditionError(absl::StrCat("checkpoint.initial: of job ", wish.initial_of.job.value(),
                                                 " no checkpoint can be begun with: ", absl::StrJoin(skipped, "; "),
                                                 "; start the workers of its nodes, or submit the job with other weights"));
  return some_lack ? WithFault(none, Fault::kStorage) : none;
}

// None can be gone on from.
absl::Status WithoutLocal(const planner::PlannerInput& input, const CheckpointWish& wish, const std::vector<std::string>& skipped,
                          Prepared* prepared) {
  const bool went_back = wish.go_back.epoch > Epoch();
  const bool all_given_up =
      std::all_of(wish.held.checkpoints.begin(), wish.held.checkpoints.end(),
                  [&](const UnitedCheckpoint& each) { return wish.go_back.GaveUp(each.head.epoch, each.head.step); });
  const bool begins =
      wish.published.empty() && wish.safe.empty() && !wish.adopts && all_given_up && (!went_back || wish.go_back.step == 0);
  if (begins && InitialIsJob(input.config.checkpoint)) return PrepareInitialOfJob(input, wish, prepared);
  if (begins) return PrepareInitial(input, wish, prepared);
  // From step 0 it would throw away what the ranks saved, and what lacks may come back with its node.
  return WithFault(
      absl::FailedPreconditionError(absl::StrCat(
          !skipped.empty()          ? absl::StrJoin(skipped, "; ")
          : !wish.published.empty() ? absl::StrCat("no node that is here has anything of checkpoint ", wish.published)
          : !went_back              ? absl::StrCat("no node that is here has a checkpoint of uid ", wish.owner.uid.value(),
                                                   ", which the job is to adopt")
                                    : absl::StrCat("no node that is here has a checkpoint up to step ", wish.go_back.step),
          "; start the worker of the node that had it, with its disk, or begin again: motley stop ", wish.owner.job.value(),
          " --wait, then motley resume ", wish.owner.job.value(), " --from 0")),
      Fault::kStorage);
}

// Who saved some of it may have newer ones. False: all are here.
bool SayWhoIsAway(const Holdings& held, std::vector<std::string>* said) {
  std::set<std::string> away;
  for (const UnitedCheckpoint& checkpoint : held.checkpoints) {
    for (const HeldFile& file : checkpoint.head.files) {
      const NodeName node(file.node);
      if (!held.offers.contains(node)) away.insert(file.node);
    }
  }
  if (away.empty()) return false;
  said->push_back(absl::StrCat("nodes saved with the lost job that do not say what they have, and may have newer checkpoints: ",
                               absl::StrJoin(away, ", ")));
  return true;
}

// What is behind the one that is used, and waited for: what was safe until it comes, or people decide otherwise; what was only
// published for as long as nodes may be coming back. `lacking_step`: the greatest of newer ones that have files which are not
// here. `skipped`: why it is not used, where nobody has said so.
absl::Status WaitForNewer(const HeldCheckpoint& used, const CheckpointWish& wish, std::optional<int64_t> lacking_step,
                          std::vector<std::string>* skipped) {
  const CheckpointPlace own = PlaceOf(used);
  const auto is_newer = [&](const std::string& name) {
    const auto place = PlaceOf(name);
    return place && *place > own && !wish.damaged.contains(name);
  };
  const auto say = [&](const std::string& name, const char* what) {
    if (skipped->empty())
      skipped->push_back(absl::StrCat("no node that is here has anything of checkpoint ", name, ", which was ", what));
  };
  // Whether what it adopts was safe nobody knows any more, so people say how far they go back.
  const bool said_how_far = wish.go_back.epoch > Epoch();
  const bool some_away = wish.adopts && !said_how_far && SayWhoIsAway(wish.held, skipped);
  const bool some_lack = wish.adopts && lacking_step && (!said_how_far || *lacking_step > used.step);
  if (is_newer(wish.safe) || some_lack || some_away) {
    say(wish.safe, "safe");
    return WithFault(absl::UnavailableError(
                         absl::StrCat(absl::StrJoin(*skipped, "; "), "; start the worker of a node that has it, with its disk, ",
                                      "or give up what is newer than step ", used.step, ": motley stop ", wish.owner.job.value(),
                                      " --wait, then motley resume ", wish.owner.job.value(), " --from ", used.step)),
                     Fault::kStorage);
  }
  if (const auto place = PlaceOf(wish.published); place && *place > own) say(wish.published, "published");
  if (!is_newer(wish.published) || !wish.awaits_published) return absl::OkStatus();
  return WithFault(absl::UnavailableError(
                       absl::StrCat(absl::StrJoin(*skipped, "; "),
                                    "; the coordinator has just started, so nodes may be coming back: it waits a minute before "
                                    "it goes on from step ",
                                    used.step)),
                   Fault::kStorage);
}

}  // namespace

Prepared FindLocalResumePoint(const planner::PlannerInput& input, const CheckpointWish& wish) {
  Prepared prepared;
  prepared.epoch = input.epoch;
  prepared.status = CheckKeepers(input, wish.held);
  prepared.offers = wish.held.offers;
  for (const UnitedCheckpoint& checkpoint : wish.held.checkpoints) {
    prepared.epoch = std::max(prepared.epoch, Epoch(checkpoint.head.epoch.value() + 1));
  }
  if (wish.adopts_all) prepared.epoch = Epoch(prepared.epoch.value() + kGenerationsUnseen);
  if (!prepared.status.ok()) return prepared;
  std::vector<std::string> skipped;
  std::optional<int64_t> lacking_step;
  for (const UnitedCheckpoint& checkpoint : wish.held.checkpoints) {
    const absl::Status why_not = WhyNot(checkpoint, input, wish);
    if (!why_not.ok()) {
      if (FaultOf(why_not) == Fault::kStorage) lacking_step = std::max(lacking_step.value_or(0), checkpoint.head.step);
      skipped.push_back(CleanLine(std::string(why_not.message())));
      continue;
    }
    prepared.resume_from = checkpoint.head.name;
    prepared.start_step = checkpoint.head.step;
    for (const HeldFile& file : checkpoint.head.files) prepared.resume_bytes += file.bytes;
    prepared.source = checkpoint;
    break;
  }
  if (prepared.resume_from.empty()) {
    prepared.status = WithoutLocal(input, wish, skipped, &prepared);
    return prepared;
  }
  prepared.status = WaitForNewer(prepared.source->head, wish, lacking_step, &skipped);
  if (!prepared.status.ok()) return prepared;
  prepared.skipped = std::move(skipped);
  prepared.status = CheckGiven(prepared.epoch, wish.owner.job);
  return prepared;
}

}  // namespace motley::coordinator
