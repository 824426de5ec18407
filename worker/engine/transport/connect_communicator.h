// Makes the communicator of an epoch's ranks. What moves the bytes is chosen here and nowhere else: another transport is a file
// pair that implements Communicator, and a line in connect_communicator.cc.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/device/device.h"
#include "common/session/data_authentication.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/nccl/nccl_api.h"
#include "worker/engine/transport/collective_way.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/device_memory.h"
#include "worker/engine/transport/link_clock.h"

namespace motley::engine {

// Of a rank on a card. Groups and pairs whose members can use NCCL together do (common/device/transport_choice.h), the others use
// TCP.
struct NcclOptions {
  const NcclApi* api = nullptr;  // null: this rank has no NCCL, or the job wants none
  // The job asked for NCCL by name: what cannot use it is an error and not a reason for TCP. The same on all ranks.
  bool required = false;
  NcclCosts costs;           // the same on all ranks
  std::vector<DType> types;  // of what collectives move: each kind of one runs once when a group is made; the same on all ranks
  int multiprocessors = 0;   // of this rank's card: bounds what transfers take of it; 0: not known, NCCL chooses
  // What NCCL has logged of a communicator that was made since it was asked last (nccl_log_file.h); null: nobody knows.
  std::function<std::optional<NcclLinks>(bool is_pair)> new_links;
};

struct CommunicatorOptions {
  int rank = 0;
  std::vector<DeviceId> devices;            // by rank
  std::vector<std::string> data_addresses;  // by rank: numeric interface addresses
  DeviceDescription device;                 // of this rank: its links
  // Of what goes over TCP. What NCCL moves carries no codes.
  DataAuthentication authentication = DataAuthentication::kBetweenMachines;
  // Members of each group in the order of its ring: a collective goes from each to the next and from the last to the first.
  // Members of one node next to each other, or its NIC carries the array several times. The same on all ranks.
  std::vector<std::vector<int>> groups;
  std::set<int> sends_to, receives_from;  // peers of this rank's hand-overs; each of them knows of it
  // cudaStream_t by Lane, of a device that has streams.
  std::array<void*, kNumLanes> streams{};
  DeviceMemory* memory = nullptr;  // of a device that has one of its own: arrays lie in it
  NcclOptions nccl;
  std::string key_prefix;  // of rendezvous keys; distinguishes two communicators of one epoch
  // For all ranks to introduce themselves, some of which still start; then for this one's peers to connect. Both lie below the
  // patience of the rank's worker, so that the rank's own words, which name the peer and what was seen of it, come first.
  absl::Duration introduction_timeout = absl::Seconds(45);
  absl::Duration meeting_timeout = absl::Seconds(12);
  absl::Duration nccl_timeout = absl::Seconds(60);  // for one communicator of NCCL; many have more (NcclConnectLimit)
  std::function<bool()> stopped;                    // asked while connecting: nobody wants this communicator any more
  // A wait longer than this ends the epoch. No failure detector: the daemons notice failures; this only keeps a rank
  // that nobody kills from waiting for ever.
  absl::Duration deadline = absl::Minutes(10);
};

// 0, 1, ..., world - 1: the group of all.
std::vector<int> EveryRank(int world);

// Blocks until all ranks are there and this one is connected with its neighbours in every ring that it is in and with the peers
// of its hand-overs. UNAVAILABLE: the address cannot be bound, or (Fault::kPeer, by name) a peer did not come. CANCELLED:
// stopped. INTERNAL: groups or peers that are none. FAILED_PRECONDITION: NCCL is required and some members cannot use it
// together; what each of them has is said. Or ranks are of two builds, or differ in what they authenticate. `host`, `links` and
// what options.nccl points to must outlive the result.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectCommunicator(const CommunicatorOptions& options, RankHost& host,
                                                                  LinkClock& links);

}  // namespace motley::engine
