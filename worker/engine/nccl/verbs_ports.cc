#include "worker/engine/nccl/verbs_ports.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley::engine {
namespace {

using std::filesystem::path;

std::string FirstLine(const path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// By name, so that the same machine gives the same text. A folder that is not there has nothing.
std::set<path> Inside(const path& folder) {
  std::set<path> found;
  std::error_code none;
  for (std::filesystem::directory_iterator one(folder, none), end; !none && one != end; one.increment(none)) {
    found.insert(one->path());
  }
  return found;
}

// One name for each address of the port; the kernel refuses to read those of addresses that it does not use.
std::set<std::string> InterfacesOf(const path& port) {
  std::set<std::string> names;
  for (const path& file : Inside(port / "gid_attrs" / "ndevs")) {
    const std::string name = FirstLine(file);
    if (!name.empty()) names.insert(name);
  }
  return names;
}

bool IsOfTheLinkAlone(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const uint32_t ip = ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
    return (ip >> 24) == 127 || (ip >> 16) == 0xA9FE;  // 127/8, 169.254/16
  }
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ip) || IN6_IS_ADDR_LINKLOCAL(&ip);
}

}  // namespace

std::set<std::string> AddressedInterfaces() {
  std::set<std::string> names;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return names;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if ((family == AF_INET || family == AF_INET6) && !IsOfTheLinkAlone(*one->ifa_addr)) names.insert(one->ifa_name);
  }
  freeifaddrs(all);
  return names;
}

std::string VerbsPortsToLeaveOut(const std::string& folder, const std::set<std::string>& addressed) {
  std::vector<std::string> left_out;
  for (const path& device : Inside(folder)) {
    for (const path& port : Inside(device / "ports")) {
      if (FirstLine(port / "link_layer") != "Ethernet" || !absl::StrContains(FirstLine(port / "state"), "ACTIVE")) continue;
      bool leads = false;
      const std::set<std::string> interfaces = InterfacesOf(port);
      for (const std::string& name : interfaces) leads |= addressed.contains(name);
      if (!leads && !interfaces.empty()) {
        left_out.push_back(absl::StrCat(device.filename().string(), ":", port.filename().string()));
      }
    }
  }
  // "^=": all but exactly these.
  return left_out.empty() ? "" : absl::StrCat("^=", absl::StrJoin(left_out, ","));
}

}  // namespace motley::engine
