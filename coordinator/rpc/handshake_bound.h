// TLS handshakes that are under way. One costs milliseconds of the processor: of thousands at once none would be done before its
// time is over, of a few hundred all are. gRPC does not tell when one is done; a call tells, or the connection's end, or the time
// that a handshake has.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/held_socket.h"

namespace motley::coordinator {

// Used on the acceptor's thread.
class HandshakeBound {
 public:
  static constexpr size_t kMost = 256;
  // Beyond so many, an address loses those that take longer than a handshake does, when there is no room: who begins handshakes
  // and does not end them slows others down, and keeps them out only from many addresses.
  static constexpr size_t kFairShare = 8;
  static constexpr absl::Duration kUsualTime = absl::Seconds(2);

  // `busy` must outlive it; `longest`: what gRPC grants a handshake.
  HandshakeBound(const BusyPeers& busy, absl::Duration longest) : busy_(busy), longest_(longest) {}
  // Times are steady.
  bool HasRoom(absl::Duration now);
  void Add(int fd, absl::Duration now);

 private:
  struct UnderWay {
    HeldSocket socket;
    absl::Duration begin;
  };
  void CloseSlowest(absl::Duration now);

  const BusyPeers& busy_;
  const absl::Duration longest_;
  std::vector<UnderWay> under_way_;  // the oldest first
};

}  // namespace motley::coordinator
