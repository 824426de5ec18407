// A numeric address and port as the kernel takes it: nothing here waits for a name server.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"

namespace motley::worker {

struct AddrInfo {
  addrinfo* list = nullptr;
  ~AddrInfo() {
    if (list != nullptr) freeaddrinfo(list);
  }
};

// Of TCP, to connect to or to listen on. INVALID_ARGUMENT: a name.
inline absl::Status Resolve(const std::string& address, int port, AddrInfo& out) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.c_str(), absl::StrCat(port).c_str(), &hints, &out.list) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", CleanLine(address), "' is not a numeric address"));
}

}  // namespace motley::worker
