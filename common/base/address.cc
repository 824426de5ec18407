#include "common/base/address.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"

namespace motley {
namespace {

bool IsHost(const std::string& host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

bool IsIpv6(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view key, const std::string& address, int smallest_port) {
  HostPort parsed;
  const size_t colon = address.rfind(':');
  bool good = colon != std::string::npos && absl::SimpleAtoi(address.substr(colon + 1), &parsed.port) &&
              parsed.port >= smallest_port && parsed.port <= 65535 &&
              std::all_of(address.begin() + static_cast<std::ptrdiff_t>(colon) + 1, address.end(), absl::ascii_isdigit);
  if (good && address.front() == '[') {
    good = colon >= 2 && address[colon - 1] == ']';
    if (good) parsed.host = address.substr(1, colon - 2);
    good = good && IsIpv6(parsed.host);
  } else if (good) {
    parsed.host = address.substr(0, colon);
    good = IsHost(parsed.host);
  }
  if (good) return parsed;
  return absl::InvalidArgumentError(absl::StrCat(std::string(key), " must be host:port or [IPv6 address]:port with a port from ",
                                                 smallest_port, " to 65535, got ", Quoted(address)));
}

std::string ToText(const HostPort& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return absl::StrCat(v6 ? "[" : "", address.host, v6 ? "]" : "", ":", address.port);
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace motley
