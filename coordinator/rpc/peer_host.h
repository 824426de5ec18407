// Who is at the other end of a connection.
#pragma once

#include <string>

namespace motley::coordinator {

// The numeric address in what gRPC calls a peer: "ipv4:10.0.0.5:4711", "ipv6:%5B::1%5D:4711". Of an IPv4 address inside an IPv6
// one, the former. Empty: it has none (a Unix socket).
std::string HostOfPeer(const std::string& peer);

}  // namespace motley::coordinator
