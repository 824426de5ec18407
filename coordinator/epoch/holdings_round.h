// Asks the connected nodes what they hold of a job's checkpoints on their disks, and puts the answers together.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/session/files.h"
#include "coordinator/core/core.h"
#include "coordinator/state/holdings.h"

namespace motley::coordinator {

// The first one whose workers list what lies on their disks, delete what deleted jobs left, look at paths for people, and know
// weights that were sent.
inline constexpr int kFirstProtocolThatLists = 6;

HoldingsRound AskForHoldings(Core& core, const JobStatus& job);
// The same of a job for which no node needs to keep anything now.
HoldingsRound AskForOthersHoldings(Core& core, const JobStatus& job);
// Which of them have this input whole.
HoldingsRound AskForInput(Core& core, const std::string& input);
// Whether they can keep files, and with `list` what lies on their disks, of all jobs.
HoldingsRound AskForDisks(Core& core, bool list);
// One node, without a round: what the answer says is gone is gone.
void AskToDelete(Core& core, const NodeName& node, std::vector<UnwantedFiles> unwanted);
// Whether it is an answer to this round.
bool TakeHoldings(HoldingsRound& round, const NodeName& node, const HoldingsReport& report);
// Nobody waits longer for who does not answer, and not at all for who has gone.
bool IsOver(const Core& core, const HoldingsRound& round);
// Of the nodes that are here still.
Holdings HoldingsOf(const Core& core, const HoldingsRound& round, const JobStatus& job);

// Who answered that it can keep files, with what it has of this input.
struct InputHoldings {
  std::map<NodeName, FilesOffer> offers;
  std::set<NodeName> holders;
  std::map<NodeName, int64_t> part_bytes;    // what lies there of it, not whole
  std::map<NodeName, std::string> refusals;  // why others cannot
};
InputHoldings InputHoldingsOf(const Core& core, const HoldingsRound& round, const std::string& input);
// That the reader, whose files process shows this certificate, may read there, for as long.
CheckpointHolder HolderFor(const Core& core, const NodeName& node, const FilesOffer& offer,
                           const std::string& readers_certificate, const JobUid& of, absl::Duration ticket_lifetime);

// What a node has to know to bring what it lacks of the checkpoint.
CheckpointSource SourceFor(const Core& core, const NodeName& reader, const UnitedCheckpoint& checkpoint, const JobUid& uid,
                           const std::map<NodeName, FilesOffer>& offers, absl::Duration ticket_lifetime);

}  // namespace motley::coordinator
