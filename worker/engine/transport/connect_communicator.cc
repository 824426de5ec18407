#include "worker/engine/transport/connect_communicator.h"

#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/engine/transport/nccl_communicator.h"
#include "worker/engine/transport/staged_communicator.h"
#include "worker/engine/transport/tcp_communicator.h"
#include "worker/engine/transport/transport_report.h"

namespace motley::engine {

std::vector<int> EveryRank(int world) {
  std::vector<int> ranks(world);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectCommunicator(const CommunicatorOptions& options, RankHost& host,
                                                                  LinkClock& links) {
  MOTLEY_ASSIGN_OR_RETURN(ConnectedTcp tcp, ConnectTcp(options, host, links));
  std::unique_ptr<Communicator> communicator = std::move(tcp.communicator);
  if (options.memory != nullptr) communicator = StageOn(options, std::move(communicator));
  if (options.nccl.api != nullptr) {
    MOTLEY_ASSIGN_OR_RETURN(communicator, ConnectNccl(options, tcp.introductions, std::move(communicator), host));
  }
  communicator->set_transports(ReportTransports(options, tcp.introductions, *communicator));
  return communicator;
}

}  // namespace motley::engine
