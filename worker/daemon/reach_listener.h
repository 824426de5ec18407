// Says a node's name to whoever connects to its data address, so that others can try whether they reach it (worker/daemon/reach).
// A stranger's words are not read and its connection is not kept; during an examination a connection may show its secret and send
// a burst. One thread serves all and never waits for a peer.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "worker/daemon/burst_taker.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {

// The first word of the line.
inline constexpr char kGreeting[] = "motley-node ";

class ReachListener {
 public:
  // `address` is numeric. UNAVAILABLE: it is not of this machine.
  static absl::StatusOr<std::unique_ptr<ReachListener>> Start(const std::string& address, const NodeName& name,
                                                              const Clock& clock);
  ~ReachListener();

  int port() const { return port_; }
  // Thread-safe. For a minute bursts are taken from who shows this secret, and no other.
  void AllowBursts(std::string secret) { bursts_.Allow(std::move(secret), absl::Minutes(1)); }

 private:
  ReachListener(UniqueFd socket, UniqueFd card_socket, UniqueFd wake, int port, const NodeName& name, const Clock& clock);
  void Loop();
  // Somebody, if there is one. False: there is no descriptor left.
  bool Accept(const UniqueFd& listener);

  const UniqueFd socket_, card_socket_;  // the second for what comes by the address's card; may be none (common/base/data_way.h)
  const UniqueFd wake_;                  // eventfd
  const int port_;
  const std::string line_;
  BurstTaker bursts_;
  std::thread thread_;
};

}  // namespace motley::worker
