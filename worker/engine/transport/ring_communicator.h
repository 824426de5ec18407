// The Communicator over TCP: a segmented ring on sockets of our own (meeting.h). Private to the engine.
//
// A second thread sends while the caller's thread receives; it lives as long as the communicator. Memory: one segment (256 KiB)
// and the kernel's socket buffers, outside the device's cap: they are the network card's, not the card's.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/connect_communicator.h"
#include "worker/engine/transport/link_clock.h"

namespace motley::engine {

// As ConnectCommunicator.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectRing(const CommunicatorOptions& options, RankHost& host, LinkClock& links);

}  // namespace motley::engine
