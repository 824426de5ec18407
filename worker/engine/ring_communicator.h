// The Communicator over TCP: a segmented ring on sockets of our own (meeting.h). Private to the engine.
//
// A second thread sends while the caller's thread receives; it lives as long as the communicator. Memory: one segment (256 KiB)
// and the kernel's socket buffers, outside the device's cap: they are the network card's, not the card's.
#pragma once

#include <functional>
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
  // Once for all ranks to introduce themselves, once more for the neighbours to connect.
  absl::Duration connect_timeout = absl::Seconds(60);
  std::function<bool()> stopped;  // asked while connecting: nobody wants this communicator any more
  // A wait longer than this ends the epoch. No failure detector: the daemons notice failures; this only keeps a rank
  // that nobody kills from waiting for ever.
  absl::Duration deadline = absl::Minutes(10);
};

// Blocks until all ranks are there and this one is connected with its neighbours in the ring. UNAVAILABLE: the address cannot be
// bound, or (Fault::kPeer, by name) a peer did not come. CANCELLED: stopped. `host` and `links` must outlive the result.
absl::StatusOr<std::unique_ptr<Communicator>> ConnectCommunicator(const CommunicatorOptions& options, RankHost& host,
                                                                  LinkClock& links);

}  // namespace motley::engine
