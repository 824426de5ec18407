// Network addresses in configuration and flags: parsed once, judged by one rule.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace motley {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;
};

// "host:port" or "[::1]:port". INVALID_ARGUMENT begins with `key` and says what is allowed: a port from `smallest_port` to 65535,
// a host of letters, digits and ". - _", or an IPv6 address in brackets.
absl::StatusOr<HostPort> ParseHostPort(std::string_view key, const std::string& address, int smallest_port);

// The same text again.
std::string ToText(const HostPort& address);

// An address of 127.0.0.0/8, ::1, or the name "localhost". Any other name is not: what it stands for may change.
bool IsLoopback(const std::string& host);

}  // namespace motley
