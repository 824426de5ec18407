#include "common/base/tcp_listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

constexpr int kBacklog = 1024;
// SO_REUSEADDR: connections of a daemon that was killed linger on its address.
constexpr int kOn = 1;

absl::Status CannotListen(const std::string& address, const char* why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", why,
                   "; choose another address of this machine, or end what uses it (ss -ltnp shows it)"));
}

}  // namespace

absl::StatusOr<TcpListener> TcpListener::Open(const std::string& key, const std::string& address) {
  MOTLEY_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(key, address, 0));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(parsed.host.c_str(), std::to_string(parsed.port).c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    addresses.emplace_back(reinterpret_cast<const char*>(each->ai_addr), each->ai_addrlen);
  }
  return OpenOneOf(addresses, address);
}

absl::StatusOr<TcpListener> TcpListener::OpenOneOf(const std::vector<std::string>& socket_addresses, const std::string& name) {
  int error = EADDRNOTAVAIL;
  for (const std::string& each : socket_addresses) {
    const auto* to_bind = reinterpret_cast<const sockaddr*>(each.data());
    TcpListener made(socket(to_bind->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (made.fd_ >= 0) setsockopt(made.fd_, SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof(kOn));
    if (made.fd_ < 0 || bind(made.fd_, to_bind, static_cast<socklen_t>(each.size())) != 0) {
      error = errno;
      if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL) continue;  // of a family, or an address, that this machine has not
      return CannotListen(name, strerror(error));
    }
    if (listen(made.fd_, kBacklog) != 0) return CannotListen(name, strerror(errno));
    sockaddr_storage taken = {};
    socklen_t length = sizeof(taken);
    if (getsockname(made.fd_, reinterpret_cast<sockaddr*>(&taken), &length) != 0) return CannotListen(name, strerror(errno));
    // The port stands at the same place for both families.
    made.port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&taken)->sin_port);
    made.address_ = absl::StrCat(name.substr(0, name.rfind(':')), ":", made.port_);
    return made;
  }
  return CannotListen(name, strerror(error));
}

TcpListener::TcpListener(TcpListener&& other) noexcept
    : fd_(other.Release()), port_(other.port_), address_(std::move(other.address_)) {}

TcpListener::~TcpListener() {
  if (fd_ >= 0) close(fd_);
}

int TcpListener::Release() { return std::exchange(fd_, -1); }

}  // namespace motley
