// The Communicator over TCP, on sockets of our own (meeting.h): a segmented ring for each group that this rank is in and one of
// all ranks for scalars and texts, and two ends of hand-overs for each peer of them. Private to the engine.
//
// Each ring has a second thread that sends while the caller's thread receives; it lives as long as the communicator. Memory: one
// segment (256 KiB) for each ring and the kernel's socket buffers, outside the device's cap: they are the network card's, not the
// card's.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/connect_communicator.h"
#include "worker/engine/transport/introduction.h"
#include "worker/engine/transport/link_clock.h"

namespace motley::engine {

struct ConnectedTcp {
  std::unique_ptr<Communicator> communicator;
  std::vector<Introduction> introductions;  // by rank
};

// As ConnectCommunicator, without NCCL.
absl::StatusOr<ConnectedTcp> ConnectTcp(const CommunicatorOptions& options, RankHost& host, LinkClock& links);

}  // namespace motley::engine
