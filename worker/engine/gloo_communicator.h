// The Communicator over Gloo's TCP transport: own segmented ring on point-to-point buffers. Private to the engine.
//
// A second thread sends while the caller's thread receives; it lives as long as the communicator. Memory: 2 x kRingDepth
// segments (8 MiB at most), outside the device's cap: it is the network card's, not the card's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/device.h"
#include "worker/engine/communicator.h"
#include "worker/engine/engine.h"
#include "worker/engine/link_clock.h"

namespace motley::engine {

struct CommunicatorOptions {
  int rank = 0;
  std::vector<DeviceId> devices;            // by rank
  std::vector<std::string> data_addresses;  // by rank: numeric interface addresses
  DeviceDescription device;                 // of this rank: its links
  std::string key_prefix;                   // of rendezvous keys; distinguishes two communicators of one epoch
  absl::Duration connect_timeout = absl::Seconds(60);
  // A wait longer than this ends the epoch. No failure detector: the daemons notice failures; this only keeps a rank
  // that nobody kills from waiting for ever.
  absl::Duration deadline = absl::Minutes(10);
};

// Blocks until all ranks have met. UNAVAILABLE: the address cannot be bound, or a peer did not come. `host` and `links` must
// outlive the result.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectCommunicator(const CommunicatorOptions& options, RankHost& host,
                                                                  LinkClock& links);

}  // namespace motley::engine
