// Connections that no rank makes: what a port scan, a load balancer's probe or an attacker does to listening ports.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/base/files.h"

namespace motley::engine {

// Connected to 127.0.0.1:port, or -1. Blocking.
inline FileDescriptor ConnectAsStranger(int port, const std::string& says = "") {
  FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) return FileDescriptor();
  if (!says.empty()) (void)!send(fd.get(), says.data(), says.size(), MSG_NOSIGNAL);
  return fd;
}

// Blocks until the other end has closed. False: it said something.
inline bool WasTurnedAway(int fd) {
  char byte;
  ssize_t n;
  do n = recv(fd, &byte, 1, 0);
  while (n < 0 && errno == EINTR);
  return n <= 0;
}

}  // namespace motley::engine
