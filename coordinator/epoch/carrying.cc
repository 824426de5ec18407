#include "coordinator/epoch/carrying.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/damaged_files.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/epoch/inputs.h"
#include "coordinator/epoch/looks.h"

namespace motley::coordinator {
namespace {

absl::StatusOr<const JobRecord*> JobOfCarry(const Core& core, const CarryWish& wish) {
  const auto job = core.state.jobs.find(wish.job);
  if (job == core.state.jobs.end()) return absl::NotFoundError(absl::StrCat("no job ", Quoted(wish.job.value())));
  const JobRecord& record = job->second;
  if (!IsOnNodesDisks(record.config.checkpoint)) {
    return absl::FailedPreconditionError(absl::StrCat("job ", wish.job.value(), " keeps its checkpoints in ",
                                                      CheckpointFolder(record), ", not on its nodes' disks; read them there"));
  }
  return &record;
}

bool IsLeftOut(Core& core, const JobRecord& job, const UnitedCheckpoint& checkpoint) {
  const JobRun* run = RunOf(core, job.id);
  return (run != nullptr && run->damaged.contains(checkpoint.head.name)) ||
         job.go_back.GaveUp(checkpoint.head.epoch, checkpoint.head.step);
}

absl::StatusOr<const UnitedCheckpoint*> FindWished(Core& core, const JobRecord& job, const Holdings& held,
                                                   const std::string& name) {
  std::string lacks;
  for (const UnitedCheckpoint& checkpoint : held.checkpoints) {
    if (!name.empty() && checkpoint.head.name == name) return &checkpoint;
    if (!name.empty() || IsLeftOut(core, job, checkpoint)) continue;
    if (checkpoint.whole()) return &checkpoint;
    if (lacks.empty()) lacks = absl::StrCat("; of ", checkpoint.head.name, " lacks ", WhatLacks(checkpoint));
  }
  if (!name.empty())
    return absl::NotFoundError(absl::StrCat("no node that is here has checkpoint ", CleanLine(name), " any more"));
  std::string refused;
  for (const auto& [node, why] : held.refusals) absl::StrAppend(&refused, "; node ", node.value(), ": ", why);
  return absl::NotFoundError(
      absl::StrCat("no checkpoint of job ", job.id.value(), " is whole on the nodes that are here", lacks, refused));
}

// Who has the file, as far as nodes say.
std::set<NodeName> HoldersOf(const UnitedCheckpoint& checkpoint, const std::string& file) {
  for (size_t f = 0; f < checkpoint.holders.size(); ++f) {
    if (checkpoint.head.files[f].name == file) return checkpoint.holders[f];
  }
  return checkpoint.manifests;
}

absl::StatusOr<CarryPlace> PlaceOfCarry(Core& core, const PendingCarry& carry) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* const job, JobOfCarry(core, carry.wish));
  Holdings held = HoldingsOf(core, carry.round, *job);
  LeaveOutDamaged(core, job->id, held);
  MOTLEY_ASSIGN_OR_RETURN(const UnitedCheckpoint* const checkpoint, FindWished(core, *job, held, carry.wish.checkpoint));
  const std::string file = carry.wish.file.empty() ? "the manifest" : CleanLine(carry.wish.file);
  for (const NodeName& node : HoldersOf(*checkpoint, carry.wish.file)) {
    if (carry.wish.not_from.contains(node) || !held.offers.contains(node)) continue;
    return CarryPlace{node, checkpoint->head.name, checkpoint->head.manifest_digest, checkpoint->head.mark};
  }
  return absl::NotFoundError(absl::StrCat("no ", carry.wish.not_from.empty() ? "" : "other ", "node that is here has ", file,
                                          " of checkpoint ", checkpoint->head.name));
}

void EndRoundOfCarry(Core& core, const std::string& id) {
  const PendingCarry carry = std::move(core.carries.extract(id).mapped());
  const absl::StatusOr<CarryPlace> place = PlaceOfCarry(core, carry);
  carry.answer(place);  // before the node may come
  if (!place.ok()) return;
  const JobRecord& job = core.state.jobs.at(carry.wish.job);
  core.Send(place->node, CarryCommand{job.id, job.epoch, job.uid, id, place->checkpoint, carry.wish.file});
}

}  // namespace

void BeginCarry(Core& core, const std::string& id, PendingCarry carry) {
  if (!carry.wish.input.empty()) return BeginUpload(core, id, std::move(carry));
  const absl::StatusOr<const JobRecord*> job = JobOfCarry(core, carry.wish);
  if (!job.ok()) return carry.answer(job.status());
  carry.round = AskForHoldings(core, **job);
  core.carries[id] = std::move(carry);
  AdvanceCarries(core);
}

void OnCarryOver(Core& core, const std::string& id) {
  core.carries.erase(id);
  OnUploadOver(core, id);
}

bool OnHoldingsForCarries(Core& core, const NodeName& node, const HoldingsReport& report) {
  for (auto& [id, carry] : core.carries) {
    if (!TakeHoldings(carry.round, node, report)) continue;
    AdvanceCarries(core);
    return true;
  }
  return false;
}

void AdvanceCarries(Core& core) {
  std::vector<std::string> over;
  for (const auto& [id, carry] : core.carries) {
    if (carry.wish.input.empty() && IsOver(core, carry.round)) over.push_back(id);
  }
  for (const std::string& id : over) EndRoundOfCarry(core, id);
}

}  // namespace motley::coordinator
