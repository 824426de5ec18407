#include "coordinator/rpc/handshake_bound.h"

#include <algorithm>
#include <map>

namespace motley::coordinator {
namespace {

std::string AddressOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

}  // namespace

bool HandshakeBound::HasRoom(absl::Duration now) {
  if (under_way_.size() < kMost) return true;
  std::erase_if(under_way_, [&](const UnderWay& each) {
    return now - each.begin > longest_ || !each.socket.IsOpen() || busy_.Has(each.socket.peer);
  });
  if (under_way_.size() >= kMost) CloseSlowest(now);
  return under_way_.size() < kMost;
}

void HandshakeBound::CloseSlowest(absl::Duration now) {
  std::map<std::string, size_t> held;
  for (const UnderWay& each : under_way_) ++held[AddressOf(each.socket.peer)];
  std::erase_if(under_way_, [&](const UnderWay& each) {
    size_t& of_address = held[AddressOf(each.socket.peer)];
    if (of_address <= kFairShare || now - each.begin <= kUsualTime) return false;
    each.socket.ShutDown();
    --of_address;
    return true;
  });
}

void HandshakeBound::Add(int fd, absl::Duration now) { under_way_.push_back({HeldSocket::Of(fd), now}); }

}  // namespace motley::coordinator
