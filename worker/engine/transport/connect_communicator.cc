#include "worker/engine/transport/connect_communicator.h"

#include <numeric>

#include "worker/engine/transport/tcp_communicator.h"

namespace motley::engine {

std::vector<int> EveryRank(int world) {
  std::vector<int> ranks(world);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectCommunicator(const CommunicatorOptions& options, RankHost& host,
                                                                  LinkClock& links) {
  return ConnectTcp(options, host, links);
}

}  // namespace motley::engine
