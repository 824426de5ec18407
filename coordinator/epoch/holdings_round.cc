#include "coordinator/epoch/holdings_round.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/checkpoint/mark_file.h"
#include "coordinator/epoch/resume_point.h"

namespace motley::coordinator {
namespace {

// A disk that is busy reads a few dozen manifests.
constexpr absl::Duration kAnswerPatience = absl::Seconds(30);

std::string SecretOf(const Core& core, const NodeName& node) {
  return core.numbers.FilesSecretOf(node, core.state.nodes.at(node).description.incarnation);
}

bool IsHere(const Core& core, const NodeName& node) {
  const auto record = core.state.nodes.find(node);
  return record != core.state.nodes.end() && record->second.connected;
}

FilesOffer OfferOf(const Core& core, const NodeName& node, const HoldingsReport& answer) {
  const std::string address = ToText(HostPort{core.state.nodes.at(node).description.data_address, answer.port});
  return {address, answer.certificate, answer.free_bytes};
}

HoldingsRound NewRound(Core& core, const std::string& of) {
  HoldingsRound round;
  round.check_id = absl::StrCat("holdings-", of, "-", ++core.holdings_rounds_begun, "-", core.journal.UnixMs());
  round.since = core.clock.Now();
  for (const auto& [name, node] : core.state.nodes) {
    if (node.connected) round.answers[name];
  }
  return round;
}

HoldingsRound Ask(Core& core, const JobStatus& job, bool only_look) {
  HoldingsRound round = NewRound(core, job.id.value());
  for (auto& [name, answer] : round.answers) {
    HoldingsCommand command{job.id, job.epoch, job.uid, round.check_id, SecretOf(core, name)};
    command.only_look = only_look;
    core.Send(name, std::move(command));
  }
  return round;
}

}  // namespace

HoldingsRound AskForHoldings(Core& core, const JobStatus& job) { return Ask(core, job, false); }

HoldingsRound AskForOthersHoldings(Core& core, const JobStatus& job) { return Ask(core, job, true); }

HoldingsRound AskForInput(Core& core, const std::string& input) {
  HoldingsRound round = NewRound(core, input);
  for (auto& [name, answer] : round.answers) {
    core.Send(name, HoldingsCommand{JobId(), Epoch(), JobUid(), round.check_id, SecretOf(core, name), {input}});
  }
  return round;
}

HoldingsRound AskForDisks(Core& core, bool list) {
  HoldingsRound round = NewRound(core, "disks");
  std::erase_if(round.answers, [&](const auto& answer) {
    return core.state.nodes.at(answer.first).description.protocol < kFirstProtocolThatLists;
  });
  for (auto& [name, answer] : round.answers) {
    HoldingsCommand command{JobId(), Epoch(), JobUid(), round.check_id, SecretOf(core, name)};
    command.list = list;
    core.Send(name, std::move(command));
  }
  return round;
}

void AskToDelete(Core& core, const NodeName& node, std::vector<UnwantedFiles> unwanted) {
  HoldingsCommand command{JobId(), Epoch(), JobUid(), absl::StrCat("unwanted-", ++core.holdings_rounds_begun),
                          SecretOf(core, node)};
  command.unwanted = std::move(unwanted);
  core.Send(node, std::move(command));
}

InputHoldings InputHoldingsOf(const Core& core, const HoldingsRound& round, const std::string& input) {
  InputHoldings held;
  for (const auto& [node, answer] : round.answers) {
    if (!IsHere(core, node)) continue;
    if (!answer || !answer->error.empty()) {
      held.refusals[node] = answer ? answer->error : "it did not say what it holds";
      continue;
    }
    held.offers[node] = OfferOf(core, node, *answer);
    held.part_bytes[node] = answer->part_bytes;
    if (std::find(answer->inputs.begin(), answer->inputs.end(), input) != answer->inputs.end()) held.holders.insert(node);
  }
  return held;
}

CheckpointHolder HolderFor(const Core& core, const NodeName& node, const FilesOffer& offer,
                           const std::string& readers_certificate, const JobUid& of, absl::Duration ticket_lifetime) {
  const int64_t expires = core.journal.UnixMs() + absl::ToInt64Milliseconds(ticket_lifetime);
  return {node, offer.address, offer.certificate, MakeFilesTicket(SecretOf(core, node), readers_certificate, of, expires), false,
          {}};
}

bool TakeHoldings(HoldingsRound& round, const NodeName& node, const HoldingsReport& report) {
  const auto answer = round.answers.find(node);
  if (round.check_id != report.check_id || answer == round.answers.end()) return false;
  answer->second = report;
  return true;
}

bool IsOver(const Core& core, const HoldingsRound& round) {
  if (core.clock.Now() - round.since > kAnswerPatience) return true;
  for (const auto& [node, answer] : round.answers) {
    if (!answer && IsHere(core, node)) return false;
  }
  return true;
}

Holdings HoldingsOf(const Core& core, const HoldingsRound& round, const JobStatus& job) {
  Holdings holdings;
  std::map<NodeName, HeldCheckpoints> held;
  for (const auto& [node, answer] : round.answers) {
    if (!IsHere(core, node)) continue;
    if (!answer) {
      holdings.refusals[node] = "it did not say what it holds of the job";
    } else if (!answer->error.empty()) {
      holdings.refusals[node] = answer->error;
    } else {
      holdings.offers[node] = OfferOf(core, node, *answer);
      if (!answer->held.unpublished.empty()) holdings.unpublished[node] = answer->held.unpublished;
      held[node] = answer->held;
    }
  }
  holdings.checkpoints = UniteCheckpoints(held, [&](const HeldCheckpoint& checkpoint) {
    // Another store's. Whoever makes a manifest up would use the numbers up.
    const bool adopted = checkpoint.epoch < job.adopted_below && checkpoint.epoch < Epoch(kFirstEpochToProve);
    if (adopted && IsMark(checkpoint.mark)) return true;
    return core.numbers.Marked(checkpoint.mark, job.uid, checkpoint.epoch, checkpoint.step, checkpoint.manifest_digest);
  });
  return holdings;
}

CheckpointSource SourceFor(const Core& core, const NodeName& reader, const UnitedCheckpoint& checkpoint, const JobUid& uid,
                           const std::map<NodeName, FilesOffer>& offers, absl::Duration ticket_lifetime) {
  CheckpointSource source{checkpoint.head.name, checkpoint.head.manifest_digest, checkpoint.head.mark, {}};
  const int64_t expires = core.journal.UnixMs() + absl::ToInt64Milliseconds(ticket_lifetime);
  const auto shows = offers.find(reader);
  for (const auto& [node, offer] : offers) {
    CheckpointHolder holder{node, node == reader ? "" : offer.address, offer.certificate,
                            {},   checkpoint.manifests.contains(node), {}};
    for (size_t f = 0; f < checkpoint.holders.size(); ++f) {
      if (checkpoint.holders[f].contains(node)) holder.files.push_back(checkpoint.head.files[f].name);
    }
    if (!holder.manifest && holder.files.empty()) continue;
    if (shows != offers.end() && node != reader) {
      holder.ticket = MakeFilesTicket(SecretOf(core, node), shows->second.certificate, uid, expires);
    }
    source.holders.push_back(std::move(holder));
  }
  return source;
}

}  // namespace motley::coordinator
