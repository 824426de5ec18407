#include "coordinator/client/coordinator_address.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/address.h"

namespace motley::client {
namespace {

constexpr const char* kSockets[] = {"/run/motley/coordinator.sock", "/var/lib/motley/coordinator/people/coordinator.sock"};

}  // namespace

std::string FindCoordinator() {
  for (const char* path : kSockets) {
    if (access(path, F_OK) == 0) return absl::StrCat("unix:", path);
  }
  return absl::StrCat("unix:", kSockets[0]);
}

std::string CheckCoordinatorAddress(const std::string& address) {
  if (const size_t scheme = address.find("://"); scheme != std::string::npos && !absl::StartsWith(address, "unix:")) {
    // With what a browser adds behind it.
    const std::string rest = address.substr(scheme + 3, address.find('/', scheme + 3) - scheme - 3);
    const bool whole = ParseHostPort("", rest, 1).ok();
    return absl::StrCat("'", address, "' is a URL; the coordinator speaks gRPC: write ",
                        whole ? rest : "HOST:PORT, such as 127.0.0.1:7070");
  }
  if (absl::StartsWith(address, "unix:") ? address.size() > 5 : ParseHostPort("", address, 1).ok()) return "";
  return absl::StrCat("'", address, "' is not HOST:PORT, such as 127.0.0.1:7070, or unix:PATH");
}

}  // namespace motley::client
