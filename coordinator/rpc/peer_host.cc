#include "coordinator/rpc/peer_host.h"

#include <string_view>

#include "absl/strings/str_replace.h"
#include "common/base/address.h"

namespace motley::coordinator {

std::string HostOfPeer(const std::string& peer) {
  constexpr size_t kScheme = 5;  // "ipv4:"
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return "";
  const std::string address = absl::StrReplaceAll(peer.substr(kScheme), {{"%5B", "["}, {"%5D", "]"}});
  const absl::StatusOr<HostPort> parsed = ParseHostPort("peer", address, 0);
  if (!parsed.ok()) return "";
  static constexpr std::string_view kMapped = "::ffff:";
  const bool is_mapped = parsed->host.starts_with(kMapped) && parsed->host.find('.') != std::string::npos;
  return is_mapped ? parsed->host.substr(kMapped.size()) : parsed->host;
}

}  // namespace motley::coordinator
