#include "common/base/data_way.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"

namespace motley {
namespace {

// The address alone, in network order; empty: of no family that is meant here.
std::string AddressBytes(const sockaddr* address) {
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return {reinterpret_cast<const char*>(&v4->sin_addr), sizeof(v4->sin_addr)};
  }
  if (address->sa_family != AF_INET6) return "";
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return {reinterpret_cast<const char*>(&v6->sin6_addr), sizeof(v6->sin6_addr)};
}

std::string ParsedBytes(const std::string& address) {
  char bytes[sizeof(in6_addr)];
  if (inet_pton(AF_INET, address.c_str(), bytes) == 1) return {bytes, sizeof(in_addr)};
  if (inet_pton(AF_INET6, address.c_str(), bytes) == 1) return {bytes, sizeof(in6_addr)};
  return "";
}

std::string AddressText(const std::string& bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6, bytes.data(), text, sizeof(text));
  return text;
}

struct OwnAddress {
  std::string card;  // its name
  std::string mask;  // of its subnet
  bool is_loopback = false;
};

std::optional<OwnAddress> FindOwnAddress(const std::string& bytes) {
  ifaddrs* list = nullptr;
  if (bytes.empty() || getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (AddressBytes(each->ifa_addr) != bytes) continue;
    return OwnAddress{each->ifa_name, AddressBytes(each->ifa_netmask), (each->ifa_flags & IFF_LOOPBACK) != 0};
  }
  return std::nullopt;
}

bool InSubnet(const std::string& mask, const std::string& a, const std::string& b) {
  if (mask.size() != a.size() || a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (((a[i] ^ b[i]) & mask[i]) != 0) return false;
  }
  return true;
}

// Port 0, to be chosen when it connects: ports of other connections are free for it.
bool BindToAddress(int fd, const std::string& bytes) {
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  sockaddr_in v4{.sin_family = AF_INET};
  sockaddr_in6 v6{.sin6_family = AF_INET6};
  const bool is_v4 = bytes.size() == sizeof(in_addr);
  memcpy(is_v4 ? static_cast<void*>(&v4.sin_addr) : &v6.sin6_addr, bytes.data(), bytes.size());
  return bind(fd, is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6), is_v4 ? sizeof(v4) : sizeof(v6)) ==
         0;
}

bool BindToCard(int fd, const std::string& card) {
  return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, card.c_str(), static_cast<socklen_t>(card.size() + 1)) == 0;
}

}  // namespace

bool IsOfThisMachine(const std::string& address) {
  return IsLoopback(address) || FindOwnAddress(ParsedBytes(address)).has_value();
}

std::string LeaveFrom(int fd, const std::string& own, const sockaddr_storage& peer) {
  const std::string from = ParsedBytes(own), to = AddressBytes(reinterpret_cast<const sockaddr*>(&peer));
  if (from.size() != to.size() || from.empty() || IsLoopback(own) != IsLoopback(AddressText(to))) return "";
  if (!BindToAddress(fd, from)) return absl::StrCat("cannot leave from ", own, ": ", strerror(errno));
  const std::optional<OwnAddress> found = FindOwnAddress(from);
  // On this machine bytes go by no card; beyond the subnet a router leads, and by which card only the kernel knows.
  if (!found || found->is_loopback || !InSubnet(found->mask, from, to) || FindOwnAddress(to)) return "";
  if (BindToCard(fd, found->card)) return "";
  return absl::StrCat("cannot be held to card ", found->card, " of ", own, ": ", strerror(errno));
}

void SharePort(int fd) {
  const int on = 1;
  (void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
}

int ListenOnCardOf(const std::string& own, int listener, int backlog) {
  const std::optional<OwnAddress> found = FindOwnAddress(ParsedBytes(own));
  if (!found || found->is_loopback) return -1;
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  SharePort(fd);
  if (BindToCard(fd, found->card) && bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
      listen(fd, backlog) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

}  // namespace motley
