#include "coordinator/epoch/inputs.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/logging.h"
#include "common/job/job_input.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/epoch/input_waits.h"
#include "coordinator/state/initial_weights.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// Behind what failed; where room lacks, each try looks at all that is there.
constexpr absl::Duration kRetryPause = absl::Minutes(1), kNoRoomPause = absl::Minutes(10);
// A process that gives files is there again at the next question.
constexpr absl::Duration kGonePause = absl::Seconds(5);
// A node that hashes what it has says nothing meanwhile.
constexpr absl::Duration kInputTakerPatience = absl::Minutes(10);
constexpr absl::Duration kTicketOfInput = absl::Hours(24);
constexpr absl::Duration kNodesComeBack = absl::Seconds(10);

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

// `verify`: it had it, and is said to give something else.
void TellToBring(Core& core, const std::string& id, InputKeeper& keeper, const NodeName& node, const WantedInputs& wanted,
                 bool verify = false) {
  const JobRecord& job = *wanted.at(id).jobs.front();
  CopyCommand command{job.id, job.epoch, job.uid};
  command.copy_id = absl::StrCat("input-", ++core.holdings_rounds_begun, "-", core.journal.UnixMs());
  std::set<NodeName> givers = keeper.holders;
  if (givers.empty() && !keeper.upload.empty()) givers.insert(keeper.uploads_to);
  command.source.verify = verify;
  for (const NodeName& giver : givers) {
    if (!keeper.offers.contains(giver)) continue;
    const std::string& shows = keeper.offers.at(node).certificate;
    CheckpointHolder holder = HolderFor(core, giver, keeper.offers.at(giver), shows, JobUid(id), kTicketOfInput);
    holder.manifest = keeper.holders.contains(giver);
    command.source.holders.push_back(std::move(holder));
  }
  command.files = IdsOf(wanted);
  command.bytes_per_second = LimitOfInputs(core);
  command.input = id;
  keeper.takers[node] = {command, core.state.nodes.at(node).up_since, core.clock.Now()};
  core.Send(node, std::move(command));
}

// From those that have it, or from the one to which it is sent, as it comes.
void TellWhoLacksIt(Core& core, const std::string& id, InputKeeper& keeper, const WantedInputs& wanted) {
  for (const auto& [node, offer] : keeper.offers) {
    const bool lacks = !keeper.holders.contains(node) && !keeper.takers.contains(node) && keeper.uploads_to != node;
    if (lacks && IsUsed(core, node)) TellToBring(core, id, keeper, node, wanted);
  }
}

// It compares what it has with the list, and is a holder again if that is right; else it brings what is not.
void LookAtAccused(Core& core, const FetchReport& report, InputKeeper& keeper, const NodeName& by, const WantedInputs& wanted) {
  for (const DamagedFile& damaged : report.damaged_files) {
    if (!keeper.accused.emplace(by, damaged.node).second) continue;
    if (!keeper.offers.contains(damaged.node) || !IsConnected(core, damaged.node)) continue;
    if (keeper.holders.erase(damaged.node) > 0) TellToBring(core, report.input, keeper, damaged.node, wanted, /*verify=*/true);
  }
}

void CallOffTakers(Core& core, const InputKeeper& keeper) {
  for (const auto& [node, taker] : keeper.takers) {
    CopyCommand over = taker.command;
    over.copy_id.clear();
    if (IsConnected(core, node)) core.Send(node, std::move(over));
  }
}

void EndRoundOfInput(Core& core, const std::string& id, InputKeeper& keeper, const WantedInputs& wanted) {
  InputHoldings held = InputHoldingsOf(core, *keeper.round, id);
  // Who did not say anything now has what it had.
  for (const auto& [node, why] : held.refusals) {
    if (keeper.holders.contains(node)) held.holders.insert(node);
  }
  // Nor who compares what it has with the list.
  for (const auto& [node, taker] : keeper.takers) {
    if (taker.command.source.verify) held.holders.erase(node);
  }
  keeper.round.reset();
  keeper.asked = true;
  if (keeper.holders != held.holders) core.state.membership_changed = core.clock.Now();  // as if they had joined
  keeper.offers = held.offers;
  keeper.holders = held.holders;
  keeper.part_bytes = held.part_bytes;
  for (const NodeName& holder : keeper.holders) keeper.takers.erase(holder);
  keeper.failed.clear();
  for (const auto& [node, why] : held.refusals) keeper.failed[node] = why;
  if (!keeper.failed.empty()) keeper.look_at = core.clock.Now() + kRetryPause;
  // Nobody gives any more what came: who begins anew may give it to any of them.
  if (keeper.holders.empty() && keeper.upload.empty()) {
    CallOffTakers(core, keeper);
    return keeper.takers.clear();
  }
  TellWhoLacksIt(core, id, keeper, wanted);
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

// Who has it elsewhere, else who has the most of it, else the most room.
absl::StatusOr<NodeName> WhoTakes(const Core& core, const InputKeeper& keeper, const CarryWish& wish) {
  const std::set<NodeName>& not_from = wish.not_from;
  for (const NodeName& holder : keeper.holders) {
    if (IsConnected(core, holder)) return absl::AlreadyExistsError(absl::StrCat("node ", holder.value(), " has it"));
  }
  if (!keeper.upload.empty()) return absl::UnavailableError(absl::StrCat("it is being sent to node ", keeper.uploads_to.value()));
  std::optional<NodeName> roomiest;
  for (const auto& [node, offer] : keeper.offers) {
    if (not_from.contains(node) || !IsUsed(core, node) || keeper.takers.contains(node)) continue;
    const auto rank = [&](const NodeName& each) {
      const auto part = keeper.part_bytes.find(each);
      return std::tuple(wish.on_nodes.contains(each), part == keeper.part_bytes.end() ? 0 : part->second,
                        keeper.offers.at(each).room_bytes);
    };
    if (!roomiest || rank(node) > rank(*roomiest)) roomiest = node;
  }
  if (roomiest) return *roomiest;
  std::string why;
  for (const auto& [node, said] : keeper.failed) absl::StrAppend(&why, "; node ", node.value(), ": ", said);
  if (!not_from.empty()) return absl::NotFoundError(absl::StrCat("no other node is here that can take it", why));
  return absl::UnavailableError(absl::StrCat("no node is here that can take it", why));
}

void AnswerUploads(Core& core, const WantedInputs& wanted) {
  // Behind a start of the coordinator the node that has the most of it may be the last to come.
  const absl::Duration now = core.clock.Now();
  if (now - core.started < kNodesComeBack && now - core.state.membership_changed < core.config.driver.settle) return;
  std::vector<std::string> ready;
  for (const auto& [id, carry] : core.carries) {
    const auto keeper = core.inputs.find(carry.wish.input);
    if (keeper != core.inputs.end() && keeper->second.asked && !keeper->second.round) ready.push_back(id);
  }
  for (const std::string& id : ready) {
    const PendingCarry carry = std::move(core.carries.extract(id).mapped());
    InputKeeper& keeper = core.inputs.at(carry.wish.input);
    const absl::StatusOr<NodeName> node = WhoTakes(core, keeper, carry.wish);
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
    command.path = carry.wish.path;
    core.Send(*node, std::move(command));
    TellWhoLacksIt(core, carry.wish.input, keeper, wanted);
  }
}

// Of jobs that have ended: what was begun for them is called off. What is sent by somebody is waited for.
void ForgetUnwanted(Core& core, const WantedInputs& wanted) {
  std::erase_if(core.inputs, [&](const auto& entry) {
    const auto& [id, keeper] = entry;
    if (wanted.contains(id) || !keeper.upload.empty()) return false;
    CallOffTakers(core, keeper);
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
  for (const auto& [id, input] : wanted) EndJobsInVain(core, input, core.inputs[id]);
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
  core.metrics.files_bytes.Add({{"purpose", kBytesOfInputs}},
                               static_cast<double>(std::max<int64_t>(report.bytes_here - taker->second.bytes_here, 0)));
  taker->second.bytes = report.bytes, taker->second.bytes_here = report.bytes_here;
  const WantedInputs wanted = WantedBy(core.state);
  const auto input = wanted.find(report.input);
  if (input != wanted.end()) LookAtAccused(core, report, keeper, node, wanted);
  if (!report.done && report.error.empty()) return;
  keeper.takers.erase(node);
  if (report.done) {
    keeper.look_at = core.clock.Now();
    return;
  }
  keeper.failed[node] = report.error;
  const absl::Duration pause = report.error_code == absl::StatusCode::kResourceExhausted ? kNoRoomPause
                               : report.error_code == absl::StatusCode::kUnavailable     ? kGonePause
                                                                                         : kRetryPause;
  keeper.look_at = core.clock.Now() + pause;
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
  const std::vector<JobInput> now = InputsNow(job->second);
  const bool wants = std::any_of(now.begin(), now.end(), [&](const JobInput& input) { return input.id == carry.wish.input; });
  if (reads && !wants) return carry.answer(absl::AlreadyExistsError("the job has read it, and needs it no more"));
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
