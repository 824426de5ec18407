#include "coordinator/epoch/inputs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/logging.h"
#include "common/job/job_input.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// Behind what failed; where room lacks, each try looks at all that is there.
constexpr absl::Duration kRetryPause = absl::Minutes(1), kNoRoomPause = absl::Minutes(10);
// A node that hashes what it has says nothing meanwhile.
constexpr absl::Duration kInputTakerPatience = absl::Minutes(10);
constexpr absl::Duration kTicketOfInput = absl::Hours(24);

// An input, its name, and the unfinished jobs that read it.
struct WantedInput {
  std::string name;
  std::vector<const JobRecord*> jobs;
};
using WantedInputs = std::map<std::string, WantedInput>;

WantedInputs WantedBy(const ClusterState& state) {
  WantedInputs wanted;
  for (const auto& [id, job] : state.jobs) {
    if (IsFinal(job.phase)) continue;
    for (const JobInput& input : InputsOf(job.config)) {
      wanted[input.id].name = input.name;
      wanted[input.id].jobs.push_back(&job);
    }
  }
  return wanted;
}

std::vector<std::string> IdsOf(const WantedInputs& wanted) {
  std::vector<std::string> ids;
  for (const auto& [id, input] : wanted) ids.push_back(id);
  return ids;
}

bool IsConnected(const Core& core, const NodeName& node) {
  const auto record = core.state.nodes.find(node);
  return record != core.state.nodes.end() && record->second.connected;
}
bool IsUsed(const Core& core, const NodeName& node) { return IsConnected(core, node) && MayBeUsed(core.state.nodes.at(node)); }

void SayFailed(Core& core, const JobRecord& job, const NodeName& node, const std::string& name, const std::string& why) {
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kInputFailed;
  event.node = node;
  event.epoch = job.epoch;
  event.message = absl::StrCat("node ", node.value(), " could not take ", CleanLine(name), ": ", CleanLine(why),
                               "; it is tried again, and the job goes on without that node meanwhile");
  core.Emit(std::move(event));
}

// Beside a job that trains as slowly as copies of checkpoints.
int64_t LimitOfInputs(const Core& core) {
  const bool used = core.state.run && core.state.run->stage == Stage::kRunning;
  return used ? core.copy_rate.bytes_per_second() : 0;
}

void TellToBring(Core& core, const std::string& id, InputKeeper& keeper, const NodeName& node, const WantedInputs& wanted) {
  const JobRecord& job = *wanted.at(id).jobs.front();
  CopyCommand command{job.id, job.epoch, job.uid};
  command.copy_id = absl::StrCat("input-", ++core.holdings_rounds_begun, "-", core.journal.UnixMs());
  for (const NodeName& holder : keeper.holders) {
    if (!keeper.offers.contains(holder)) continue;
    command.source.holders.push_back(
        HolderFor(core, holder, keeper.offers.at(holder), keeper.offers.at(node).certificate, JobUid(id), kTicketOfInput));
  }
  command.files = IdsOf(wanted);
  command.bytes_per_second = LimitOfInputs(core);
  command.input = id;
  keeper.takers[node] = {command, core.state.nodes.at(node).up_since, core.clock.Now()};
  core.Send(node, std::move(command));
}

void EndRoundOfInput(Core& core, const std::string& id, InputKeeper& keeper, const WantedInputs& wanted) {
  InputHoldings held = InputHoldingsOf(core, *keeper.round, id);
  // Who did not say anything now has what it had.
  for (const auto& [node, why] : held.refusals) {
    if (keeper.holders.contains(node)) held.holders.insert(node);
  }
  keeper.round.reset();
  keeper.asked = true;
  if (keeper.holders != held.holders) core.state.membership_changed = core.clock.Now();  // as if they had joined
  keeper.offers = held.offers;
  keeper.holders = held.holders;
  keeper.failed.clear();
  for (const auto& [node, why] : held.refusals) keeper.failed[node] = why;
  if (!keeper.failed.empty()) keeper.look_at = core.clock.Now() + kRetryPause;
  if (keeper.holders.empty()) return;
  for (const auto& [node, offer] : keeper.offers) {
    const bool lacks = !keeper.holders.contains(node) && !keeper.takers.contains(node) && keeper.uploads_to != node;
    if (lacks && IsUsed(core, node)) TellToBring(core, id, keeper, node, wanted);
  }
}

// Whose session is another one than it was told by, or who says nothing.
void ForgetSilentTakers(Core& core, InputKeeper& keeper) {
  const size_t before = keeper.takers.size();
  std::erase_if(keeper.takers, [&](const auto& taker) {
    const auto node = core.state.nodes.find(taker.first);
    const bool same = node != core.state.nodes.end() && node->second.connected && node->second.up_since == taker.second.up_since;
    return !same || core.clock.Now() - taker.second.heard >= kInputTakerPatience;
  });
  if (keeper.takers.size() != before) keeper.look_at = core.clock.Now();
}

void LimitTakers(Core& core, InputKeeper& keeper) {
  const int64_t limit = LimitOfInputs(core);
  for (auto& [node, taker] : keeper.takers) {
    if (std::exchange(taker.command.bytes_per_second, limit) != limit) core.Send(node, taker.command);
  }
}

void AdvanceInput(Core& core, const std::string& id, InputKeeper& keeper, const WantedInputs& wanted) {
  ForgetSilentTakers(core, keeper);
  LimitTakers(core, keeper);
  if (keeper.round) {
    if (IsOver(core, *keeper.round)) EndRoundOfInput(core, id, keeper, wanted);
    return;
  }
  const bool news = !keeper.asked || keeper.membership != core.state.membership_changed;
  if (!news && (!keeper.look_at || core.clock.Now() < *keeper.look_at)) return;
  keeper.membership = core.state.membership_changed;
  keeper.look_at.reset();
  keeper.round = AskForInput(core, id);
  if (IsOver(core, *keeper.round)) EndRoundOfInput(core, id, keeper, wanted);  // nobody is here
}

// Ranks of the job run there: whatever the node has not said yet, they read it.
bool HasRanks(const Core& core, const JobId& job, const NodeName& node) {
  return core.state.run && core.state.run->job == job &&
         std::any_of(core.state.run->ranks.begin(), core.state.run->ranks.end(),
                     [&](const RankRun& rank) { return NodeOf(rank.device) == node && !IsGone(core.state, rank); });
}

void NoteWhoLacks(Core& core, const InputKeeper& keeper, const JobId& job) {
  std::set<NodeName>& lacking = core.state.lacks_inputs[job];
  for (const auto& [name, node] : core.state.nodes) {
    if (MayBeUsed(node) && !keeper.holders.contains(name) && !HasRanks(core, job, name)) lacking.insert(name);
  }
}

// Empty: the job need not wait for this one. Without numbers that change all the while but the percentage.
std::string WhatIsAwaited(const Core& core, const InputKeeper& keeper, const std::string& name, const JobRecord& job) {
  const std::string input = CleanLine(name);
  if (!keeper.asked) return absl::StrCat("the nodes are asked whether they have ", input);
  const bool some =
      std::any_of(keeper.holders.begin(), keeper.holders.end(), [&](const NodeName& n) { return IsConnected(core, n); });
  if (!some && !keeper.upload.empty()) return absl::StrCat(input, " is sent to node ", keeper.uploads_to.value());
  if (!some) {
    return absl::StrCat(input, " lies on no node that is here; 'motley submit' with the same file and --id ", job.id.value(),
                        " sends it, or goes on with it");
  }
  std::vector<std::string> coming;
  for (const auto& [node, taker] : keeper.takers) {
    const double part = taker.bytes > 0 ? static_cast<double>(taker.bytes_here) / static_cast<double>(taker.bytes) : 0;
    coming.push_back(absl::StrFormat("node %s has %.0f %% of %s", node.value(), 100 * part, Count(taker.bytes, "byte")));
  }
  if (!coming.empty()) return absl::StrCat(input, " comes to the nodes: ", absl::StrJoin(coming, ", "));
  if (std::any_of(keeper.holders.begin(), keeper.holders.end(), [&](const NodeName& n) { return IsUsed(core, n); })) return "";
  std::string why;
  for (const auto& [node, said] : keeper.failed) absl::StrAppend(&why, "; node ", node.value(), ": ", said);
  return absl::StrCat("no node that may be used has ", input, why);
}

void NoteWhoWaits(Core& core, const WantedInputs& wanted) {
  core.state.lacks_inputs.clear();
  core.state.awaits_inputs.clear();
  for (const auto& [id, input] : wanted) {
    const InputKeeper& keeper = core.inputs.at(id);
    for (const JobRecord* job : input.jobs) {
      NoteWhoLacks(core, keeper, job->id);
      const std::string awaited = WhatIsAwaited(core, keeper, input.name, *job);
      if (!awaited.empty()) core.state.awaits_inputs.emplace(job->id, awaited);
    }
  }
}

absl::StatusOr<NodeName> WhoTakes(const Core& core, const InputKeeper& keeper, const std::set<NodeName>& not_from) {
  for (const NodeName& holder : keeper.holders) {
    if (IsConnected(core, holder)) return absl::AlreadyExistsError(absl::StrCat("node ", holder.value(), " has it"));
  }
  if (!keeper.upload.empty()) return absl::UnavailableError(absl::StrCat("it is being sent to node ", keeper.uploads_to.value()));
  std::optional<NodeName> roomiest;
  for (const auto& [node, offer] : keeper.offers) {
    if (not_from.contains(node) || !IsUsed(core, node) || keeper.takers.contains(node)) continue;
    if (!roomiest || offer.room_bytes > keeper.offers.at(*roomiest).room_bytes) roomiest = node;
  }
  if (roomiest) return *roomiest;
  std::string why;
  for (const auto& [node, said] : keeper.failed) absl::StrAppend(&why, "; node ", node.value(), ": ", said);
  if (!not_from.empty()) return absl::NotFoundError(absl::StrCat("no other node is here that can take it", why));
  return absl::UnavailableError(absl::StrCat("no node is here that can take it", why));
}

void AnswerUploads(Core& core, const WantedInputs& wanted) {
  std::vector<std::string> ready;
  for (const auto& [id, carry] : core.carries) {
    const auto keeper = core.inputs.find(carry.wish.input);
    if (keeper != core.inputs.end() && keeper->second.asked && !keeper->second.round) ready.push_back(id);
  }
  for (const std::string& id : ready) {
    const PendingCarry carry = std::move(core.carries.extract(id).mapped());
    InputKeeper& keeper = core.inputs.at(carry.wish.input);
    const absl::StatusOr<NodeName> node = WhoTakes(core, keeper, carry.wish.not_from);
    if (!node.ok()) {
      carry.answer(node.status());
      continue;
    }
    keeper.upload = id;
    keeper.uploads_to = *node;
    carry.answer(CarryPlace{*node});  // before the node may come
    const JobRecord& job = *wanted.at(carry.wish.input).jobs.front();
    CarryCommand command{job.id, job.epoch, job.uid, id};
    command.input = carry.wish.input;
    command.kept_inputs = IdsOf(wanted);
    core.Send(*node, std::move(command));
  }
}

// Of jobs that have ended: what was begun for them is called off. What is sent by somebody is waited for.
void ForgetUnwanted(Core& core, const WantedInputs& wanted) {
  std::erase_if(core.inputs, [&](const auto& entry) {
    const auto& [id, keeper] = entry;
    if (wanted.contains(id) || !keeper.upload.empty()) return false;
    for (const auto& [node, taker] : keeper.takers) {
      CopyCommand over = taker.command;
      over.copy_id.clear();
      if (IsConnected(core, node)) core.Send(node, std::move(over));
    }
    return true;
  });
  std::vector<std::string> in_vain;
  for (const auto& [id, carry] : core.carries) {
    if (!carry.wish.input.empty() && !wanted.contains(carry.wish.input)) in_vain.push_back(id);
  }
  for (const std::string& id : in_vain) {
    const PendingCarry carry = std::move(core.carries.extract(id).mapped());
    carry.answer(absl::FailedPreconditionError(absl::StrCat("job ", carry.wish.job.value(), " has ended")));
  }
}

}  // namespace

void KeepInputs(Core& core) {
  if (core.stopping) return;
  const WantedInputs wanted = WantedBy(core.state);
  ForgetUnwanted(core, wanted);
  for (const auto& [id, input] : wanted) AdvanceInput(core, id, core.inputs[id], wanted);
  AnswerUploads(core, wanted);
  NoteWhoWaits(core, wanted);
}

bool OnHoldingsForInputs(Core& core, const NodeName& node, const HoldingsReport& report) {
  for (auto& [id, keeper] : core.inputs) {
    if (!keeper.round || !TakeHoldings(*keeper.round, node, report)) continue;
    if (IsOver(core, *keeper.round)) KeepInputs(core);
    return true;
  }
  return false;
}

void OnInputReport(Core& core, const NodeName& node, const FetchReport& report) {
  const auto found = core.inputs.find(report.input);
  if (found == core.inputs.end()) return;
  InputKeeper& keeper = found->second;
  const auto taker = keeper.takers.find(node);
  if (taker == keeper.takers.end() || taker->second.command.copy_id != report.copy_id) return;
  taker->second.heard = core.clock.Now();
  taker->second.bytes = report.bytes, taker->second.bytes_here = report.bytes_here;
  if (!report.done && report.error.empty()) return;
  keeper.takers.erase(taker);
  if (report.done) {
    keeper.look_at = core.clock.Now();
    return;
  }
  keeper.failed[node] = report.error;
  keeper.look_at = core.clock.Now() + (report.error_code == absl::StatusCode::kResourceExhausted ? kNoRoomPause : kRetryPause);
  const WantedInputs wanted = WantedBy(core.state);
  const auto input = wanted.find(report.input);
  if (std::exchange(keeper.said[node], report.error) == report.error) return;
  if (input != wanted.end()) SayFailed(core, *input->second.jobs.front(), node, input->second.name, report.error);
}

void BeginUpload(Core& core, const std::string& id, PendingCarry carry) {
  const auto job = core.state.jobs.find(carry.wish.job);
  if (job == core.state.jobs.end())
    return carry.answer(absl::NotFoundError(absl::StrCat("no job ", Quoted(carry.wish.job.value()))));
  const std::vector<JobInput> inputs = InputsOf(job->second.config);
  const bool reads =
      std::any_of(inputs.begin(), inputs.end(), [&](const JobInput& input) { return input.id == carry.wish.input; });
  if (!reads) {
    return carry.answer(absl::InvalidArgumentError(
        absl::StrCat("job ", carry.wish.job.value(), " reads no input ", CleanLine(carry.wish.input))));
  }
  if (IsFinal(job->second.phase)) {
    return carry.answer(absl::FailedPreconditionError(absl::StrCat("job ", carry.wish.job.value(), " has ended")));
  }
  core.carries[id] = std::move(carry);
  KeepInputs(core);
}

void OnUploadOver(Core& core, const std::string& id) {
  for (auto& [input, keeper] : core.inputs) {
    if (keeper.upload != id) continue;
    keeper.upload.clear();
    keeper.uploads_to = NodeName();
    keeper.look_at = core.clock.Now();
  }
}

}  // namespace motley::coordinator
