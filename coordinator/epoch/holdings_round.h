// Asks the connected nodes what they hold of a job's checkpoints on their disks, and puts the answers together.
#pragma once

#include <cstdint>
#include <map>

#include "common/session/files.h"
#include "coordinator/core/core.h"
#include "coordinator/state/holdings.h"

namespace motley::coordinator {

HoldingsRound AskForHoldings(Core& core, const JobRecord& job);
// Whether it is an answer to this round.
bool TakeHoldings(HoldingsRound& round, const NodeName& node, const HoldingsReport& report);
// Nobody waits longer for who does not answer, and not at all for who has gone.
bool IsOver(const Core& core, const HoldingsRound& round);
// Of the nodes that are here still.
Holdings HoldingsOf(const Core& core, const HoldingsRound& round, const JobUid& uid);

// What a node has to know to bring what it lacks of the checkpoint.
CheckpointSource SourceFor(const Core& core, const NodeName& reader, const UnitedCheckpoint& checkpoint, const JobUid& uid,
                           const std::map<NodeName, FilesOffer>& offers, absl::Duration ticket_lifetime);

}  // namespace motley::coordinator
