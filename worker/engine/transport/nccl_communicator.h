// The Communicator of a rank on a card: NCCL for the groups and pairs whose members can use it together, a host communicator for
// the others and for scalars and texts. docs/inside/nccl.md
//
// Threads: as Communicator's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/connect_communicator.h"
#include "worker/engine/transport/introduction.h"

namespace motley::engine {

// Wraps `host`, which is connected. Blocks until the members of every NCCL communicator of this rank have made it: those of
// groups by their numbers, then those of hand-overs. Errors as ConnectCommunicator's.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(const CommunicatorOptions& options,
                                                          const std::vector<Introduction>& introductions,
                                                          std::unique_ptr<Communicator> host, RankHost& rank_host);

}  // namespace motley::engine
