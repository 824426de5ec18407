// What one rank reports of the transports that its epoch found. Private to the engine.
#pragma once

#include <vector>

#include "common/session/transport_use.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/connect_communicator.h"
#include "worker/engine/transport/introduction.h"

namespace motley::engine {

// Of the groups whose first member this rank is and of the hand-overs that it sends: so each is reported by one rank.
// `communicator`: connected with these options; it is asked what it does.
std::vector<TransportUse> ReportTransports(const CommunicatorOptions& options, const std::vector<Introduction>& introductions,
                                           const Communicator& communicator);

}  // namespace motley::engine
