#include "worker/engine/transport/connect_communicator.h"

#include "worker/engine/transport/ring_communicator.h"

namespace motley::engine {

absl::StatusOr<std::unique_ptr<Communicator>> ConnectCommunicator(const CommunicatorOptions& options, RankHost& host,
                                                                  LinkClock& links) {
  return ConnectRing(options, host, links);
}

}  // namespace motley::engine
