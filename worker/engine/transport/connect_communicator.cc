#include "worker/engine/transport/connect_communicator.h"

#include <numeric>

#include "common/base/status_macros.h"
#include "worker/engine/transport/staged_communicator.h"
#include "worker/engine/transport/tcp_communicator.h"

namespace motley::engine {

std::vector<int> EveryRank(int world) {
  std::vector<int> ranks(world);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectCommunicator(const CommunicatorOptions& options, RankHost& host,
                                                                  LinkClock& links) {
  MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator, ConnectTcp(options, host, links));
  if (options.memory == nullptr) return communicator;
  return StageOn(options, std::move(communicator));
}

}  // namespace motley::engine
