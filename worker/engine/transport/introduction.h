// What the ranks tell each other before they connect, through the epoch's rendezvous keys. Private to the engine.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/transport_choice.h"
#include "common/session/data_authentication.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/transport/connect_communicator.h"
#include "worker/engine/transport/link_rates.h"
#include "worker/engine/transport/meeting.h"

namespace motley::engine {

struct Introduction {
  std::string boot_id;  // equal: the same machine, so CLOCK_MONOTONIC may be compared
  LinkRates rates;
  MeetingPoint point;
  int nccl_version = 0;     // 0: the rank uses no NCCL
  int multiprocessors = 0;  // of its card; 0: it has none
  DataAuthentication authentication = DataAuthentication::kBetweenMachines;
  std::string card;  // UUID; empty: none
};

// Everybody's, by rank; this rank is met at `point`. Nobody is called before everybody is here, so that the calls' patience is
// not spent on ranks that still start. UNAVAILABLE (Fault::kPeer): who did not come within options.introduction_timeout.
// FAILED_PRECONDITION: who is of another build, or would not authenticate what this rank would, or the other way round.
absl::StatusOr<std::vector<Introduction>> Introduce(const CommunicatorOptions& options, const MeetingPoint& point,
                                                    RankHost& host);

// These ranks as the choice of their transport sees them. `devices`, `all`: by rank.
std::vector<TransportMember> MembersOf(const std::vector<int>& ranks, const std::vector<DeviceId>& devices,
                                       const std::vector<Introduction>& all);

}  // namespace motley::engine
