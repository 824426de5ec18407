// A TCP socket that listens.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace motley {

// Owns the descriptor, which never blocks and is not inherited. Movable. Not thread-safe.
class TcpListener {
 public:
  // `address` is host:port, port 0 takes a free one. UNAVAILABLE: taken, or not an address of this machine. INVALID_ARGUMENT
  // begins with `key`: it is not host:port.
  static absl::StatusOr<TcpListener> Open(const std::string& key, const std::string& address);
  // The same at the first of what a name stands for, each a sockaddr, that this machine has: "localhost" is ::1 first, also where
  // there is no IPv6. One that is taken ends the search: whoever meant it would not find us at another.
  static absl::StatusOr<TcpListener> OpenOneOf(const std::vector<std::string>& socket_addresses, const std::string& name);
  ~TcpListener();
  TcpListener(TcpListener&& other) noexcept;
  TcpListener& operator=(TcpListener&&) = delete;

  int fd() const { return fd_; }
  // Gives the descriptor away: it is the caller's to close.
  int Release();
  int port() const { return port_; }
  // "host:port" as given, with the port really taken.
  const std::string& address() const { return address_; }

 private:
  explicit TcpListener(int fd) : fd_(fd) {}
  int fd_ = -1, port_ = 0;
  std::string address_;
};

}  // namespace motley
