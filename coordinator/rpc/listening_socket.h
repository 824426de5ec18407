// A socket that listens, made here and not by gRPC: its errors are exact, its mode is set, and who accepts is ours to say.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace motley::coordinator {

// Owns the descriptor and, of a Unix socket, its file. Movable. Not thread-safe.
class ListeningSocket {
 public:
  // `key`: of the configuration, for errors. `address` is host:port, port 0 takes a free one. UNAVAILABLE: taken, or not an
  // address of this machine.
  static absl::StatusOr<ListeningSocket> Tcp(const std::string& key, const std::string& address);
  // Mode 0660. A socket file that nobody listens on any more is replaced. UNAVAILABLE: somebody does; ALREADY_EXISTS: another
  // kind of file; INVALID_ARGUMENT: longer than a Unix socket's path may be; NOT_FOUND, PERMISSION_DENIED: the folder.
  static absl::StatusOr<ListeningSocket> Unix(const std::string& key, const std::string& path);
  // Closes; removes the socket file if it still is this socket's.
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_; }
  // As a gRPC client dials it: "127.0.0.1:7070" with the port really taken, "unix:/run/motley/coordinator.sock".
  const std::string& address() const { return address_; }

 private:
  explicit ListeningSocket(int fd) : fd_(fd) {}
  int fd_ = -1;
  std::string address_;
  std::string path_;  // of a Unix socket
};

// The longest path of a Unix socket, in bytes.
inline constexpr size_t kLongestSocketPath = 107;

}  // namespace motley::coordinator
