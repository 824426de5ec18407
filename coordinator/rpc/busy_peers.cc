#include "coordinator/rpc/busy_peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace motley::coordinator {
namespace {

constexpr char kUnixPeer[] = "unix";

}  // namespace

std::string PeerOfSocket(int fd) {
  sockaddr_storage peer = {};
  socklen_t length = sizeof(peer);
  char text[INET6_ADDRSTRLEN] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return "";
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v4.sin_port));
  }
  if (peer.ss_family == AF_UNIX) return kUnixPeer;
  if (peer.ss_family != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  // As gRPC has it: an IPv4 address that came to a socket of both families is one.
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v6.sin6_port));
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return absl::StrCat("ipv6:[", text, "]:", ntohs(v6.sin6_port));
}

std::string PeerOfCall(const std::string& grpc_peer) {
  if (absl::StartsWith(grpc_peer, "unix:")) return kUnixPeer;
  if (!absl::StartsWith(grpc_peer, "ipv4:") && !absl::StartsWith(grpc_peer, "ipv6:")) return "";
  std::string peer = absl::StrReplaceAll(grpc_peer, {{"%5B", "["}, {"%5D", "]"}});
  // "[fe80::1%25eth0]:4711": the interface is no part of the address.
  if (const size_t scope = peer.find('%'); scope != std::string::npos) {
    const size_t end = peer.find(']', scope);
    if (end != std::string::npos) peer.erase(scope, end - scope);
  }
  return peer;
}

void BusyPeers::Begin(const std::string& peer) {
  if (peer.empty()) return;
  absl::MutexLock lock(&mutex_);
  ++calls_[peer];
}

void BusyPeers::End(const std::string& peer) {
  if (peer.empty()) return;
  absl::MutexLock lock(&mutex_);
  if (const auto found = calls_.find(peer); found != calls_.end() && --found->second == 0) calls_.erase(found);
}

bool BusyPeers::Has(const std::string& peer) const {
  absl::MutexLock lock(&mutex_);
  return calls_.contains(peer);
}

}  // namespace motley::coordinator
