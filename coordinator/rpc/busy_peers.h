// Which connections have a call, by the address of their other end: gRPC tells of calls and not of connections, the acceptor
// knows connections and not their calls.
#pragma once

#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace motley::coordinator {

// The other end of a TCP connection, "ipv4:127.0.0.1:4711" or "ipv6:[::1]:4711"; "unix" of a Unix socket, whose ends have no
// names: they are counted together. Empty of any other.
std::string PeerOfSocket(int fd);
// The same of a call, from what grpc::ServerContext::peer() says of it.
std::string PeerOfCall(const std::string& grpc_peer);

// Thread-safe.
class BusyPeers {
 public:
  void Begin(const std::string& peer);
  void End(const std::string& peer);
  bool Has(const std::string& peer) const;

 private:
  mutable absl::Mutex mutex_;
  std::unordered_map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);  // by peer
};

// A call that is under way, for as long as this lives. `peers` must outlive it.
class CallMark {
 public:
  CallMark(BusyPeers& peers, const std::string& grpc_peer) : peers_(peers), peer_(PeerOfCall(grpc_peer)) { peers_.Begin(peer_); }
  ~CallMark() { peers_.End(peer_); }
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;

 private:
  BusyPeers& peers_;
  const std::string peer_;
};

}  // namespace motley::coordinator
