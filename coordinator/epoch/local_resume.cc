#include "coordinator/epoch/local_resume.h"

#include <algorithm>
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

// Its manifest is believed: it has a mark. What the job trains with may have been changed by hand in the store.
absl::Status CheckFitsJob(const HeldCheckpoint& head, const planner::PlannerInput& input, const CheckpointWish& wish) {
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape model, ParseHfConfig(head.model, head.name));
  CheckpointManifest manifest;
  manifest.model = model;
  manifest.data_digest = head.data_digest;
  manifest.seed = head.seed;
  return CheckFits(manifest, input, wish.data_digest, head.name);
}

absl::Status WhyNot(const UnitedCheckpoint& checkpoint, const planner::PlannerInput& input, const CheckpointWish& wish) {
  const HeldCheckpoint& head = checkpoint.head;
  if (wish.damaged.contains(head.name)) return absl::DataLossError(absl::StrCat("checkpoint ", head.name, " is damaged"));
  if (!checkpoint.whole()) {
    return WithFault(
        absl::UnavailableError(absl::StrCat("checkpoint ", head.name, " is not whole on the nodes that are here, which lack ",
                                            WhatLacks(checkpoint))),
        Fault::kStorage);
  }
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

// None can be gone on from.
absl::Status WithoutLocal(const planner::PlannerInput& input, const CheckpointWish& wish, const std::vector<std::string>& skipped,
                          Prepared* prepared) {
  if (wish.published.empty() && skipped.empty()) return PrepareInitial(input, wish, prepared);
  // From step 0 it would throw away what the ranks saved, and what lacks may come back with its node.
  return WithFault(absl::FailedPreconditionError(absl::StrCat(
                       skipped.empty() ? absl::StrCat("no node that is here has anything of checkpoint ", wish.published)
                                       : absl::StrJoin(skipped, "; "),
                       "; start the worker of the node that had it, with its disk")),
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
  if (!prepared.status.ok()) return prepared;
  std::vector<std::string> skipped;
  for (const UnitedCheckpoint& checkpoint : wish.held.checkpoints) {
    const absl::Status why_not = WhyNot(checkpoint, input, wish);
    if (!why_not.ok()) {
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
  const HeldCheckpoint& used = prepared.source->head;
  const auto published = ParseCheckpointFolder("", wish.published);
  const bool older = published && std::pair(published->epoch, published->step) > std::pair(used.epoch.value(), used.step);
  if (older && skipped.empty()) {
    skipped.push_back(absl::StrCat("no node that is here has anything of checkpoint ", wish.published, ", which was published"));
  }
  if (older && wish.awaits_published && !wish.damaged.contains(wish.published)) {
    prepared.status = WithFault(absl::UnavailableError(absl::StrCat(absl::StrJoin(skipped, "; "),
                                                                    "; the coordinator has just started, so nodes may be "
                                                                    "coming back: it waits a minute before it goes on from step ",
                                                                    used.step)),
                                Fault::kStorage);
    return prepared;
  }
  prepared.skipped = std::move(skipped);
  prepared.status = CheckGiven(prepared.epoch, wish.owner.job);
  return prepared;
}

}  // namespace motley::coordinator
