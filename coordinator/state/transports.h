// The transports of the epoch that runs: as planned, and as its ranks found them. Pure.
#pragma once

#include <vector>

#include "common/session/assignment.h"
#include "common/session/transport_use.h"
#include "coordinator/state/run.h"

namespace motley::coordinator {

// What the ranks will choose, as far as the coordinator knows them: every group, then every pair that hands over. Empty: no rank
// has a card, so that all goes by TCP. `ranks`: by rank.
std::vector<TransportUse> PlannedTransports(const std::vector<RankAssignment>& ranks);

// Of a run whose ranks start, train or stop; else empty. In one order, whichever rank reported first; with what was planned.
std::vector<TransportUse> FoundTransports(const JobRun& run);
// The same of what was planned.
std::vector<TransportUse> PlannedTransports(const JobRun& run);

}  // namespace motley::coordinator
