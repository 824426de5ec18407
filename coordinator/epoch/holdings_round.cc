#include "coordinator/epoch/holdings_round.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"

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

}  // namespace

HoldingsRound AskForHoldings(Core& core, const JobRecord& job) {
  HoldingsRound round;
  round.check_id = absl::StrCat("holdings-", job.id.value(), "-", ++core.holdings_rounds_begun, "-", core.journal.UnixMs());
  round.since = core.clock.Now();
  for (const auto& [name, node] : core.state.nodes) {
    if (!node.connected) continue;
    round.answers[name];
    core.Send(name, HoldingsCommand{job.id, job.epoch, job.uid, round.check_id, SecretOf(core, name)});
  }
  return round;
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

Holdings HoldingsOf(const Core& core, const HoldingsRound& round, const JobUid& uid) {
  Holdings holdings;
  std::map<NodeName, HeldCheckpoints> held;
  for (const auto& [node, answer] : round.answers) {
    if (!IsHere(core, node)) continue;
    if (!answer) {
      holdings.refusals[node] = "it did not say what it holds of the job";
    } else if (!answer->error.empty()) {
      holdings.refusals[node] = answer->error;
    } else {
      const std::string address = ToText(HostPort{core.state.nodes.at(node).description.data_address, answer->port});
      holdings.offers[node] = {address, answer->certificate, answer->free_bytes};
      if (!answer->held.unpublished.empty()) holdings.unpublished[node] = answer->held.unpublished;
      held[node] = answer->held;
    }
  }
  holdings.checkpoints = UniteCheckpoints(held, [&](const HeldCheckpoint& checkpoint) {
    return core.numbers.Marked(checkpoint.mark, uid, checkpoint.epoch, checkpoint.step, checkpoint.manifest_digest);
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
