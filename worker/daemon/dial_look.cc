#include "worker/daemon/dial_look.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/address.h"
#include "worker/daemon/burst.h"
#include "worker/daemon/numeric_address.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {
namespace {

constexpr std::string_view kUnix = "unix:";

// Where a connection is under way, or the errno at once.
int ConnectTo(const sockaddr* address, socklen_t size, UniqueFd& out) {
  out.Reset(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!out.valid()) return errno;
  return connect(out.get(), address, size) == 0 || errno == EAGAIN ? 0 : errno;  // EAGAIN: a Unix socket with a full queue
}

int BeginConnection(const std::string& target, UniqueFd& out) {
  if (target.starts_with(kUnix)) {
    const std::string path = target.substr(kUnix.size());
    sockaddr_un address{.sun_family = AF_UNIX};
    if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
    memcpy(address.sun_path, path.data(), path.size());
    return ConnectTo(reinterpret_cast<const sockaddr*>(&address), sizeof(address), out);
  }
  const absl::StatusOr<HostPort> there = ParseHostPort("worker.coordinator", target, 1);
  AddrInfo info;
  if (!there.ok() || !Resolve(there->host, there->port, info).ok()) return EINVAL;
  return ConnectTo(info.list->ai_addr, info.list->ai_addrlen, out);
}

int ConnectionError(const UniqueFd& socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string WhyNoSocket(int error) {
  if (error == EACCES || error == EPERM) {
    return absl::StrCat(strerror(error), ": the worker's user needs the group of that socket, and of its folder");
  }
  return absl::StrCat(strerror(error), ": does motley-coordinator run on this machine, and is that its workers.socket?");
}

}  // namespace

std::vector<int> TryToConnect(const std::vector<std::string>& targets, const Clock& clock, absl::Duration patience,
                              const absl::Notification& cancelled) {
  std::vector<UniqueFd> sockets(targets.size());
  std::vector<int> errors(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) errors[i] = BeginConnection(targets[i], sockets[i]);
  const absl::Duration end = clock.Now() + patience;
  while (true) {
    std::vector<pollfd> fds;
    std::vector<size_t> under_way;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (errors[i] != EINPROGRESS) continue;
      fds.push_back({sockets[i].get(), POLLOUT, 0});
      under_way.push_back(i);
    }
    const absl::Duration left = end - clock.Now();
    if (fds.empty()) return errors;
    if (left <= absl::ZeroDuration() || cancelled.HasBeenNotified()) {
      for (const size_t i : under_way) errors[i] = cancelled.HasBeenNotified() ? ECANCELED : ETIMEDOUT;
      return errors;
    }
    poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kSlice))) + 1);
    for (size_t k = 0; k < fds.size(); ++k) {
      if (fds[k].revents != 0) errors[under_way[k]] = ConnectionError(sockets[under_way[k]]);
    }
  }
}

std::string WhyNotReached(const std::string& target, int error, absl::Duration patience) {
  const absl::StatusOr<HostPort> there = ParseHostPort("worker.coordinator", target, 1);
  if (!there.ok()) return WhyNoSocket(error);
  if (error == ETIMEDOUT) {
    return absl::StrFormat(
        "no answer for %.0f s: is a firewall in between that does not let TCP port %d through, is the machine "
        "up, and is that its address?",
        absl::ToDoubleSeconds(patience), there->port);
  }
  if (error == ECONNREFUSED) {
    return absl::StrCat(strerror(error), ": does motley-coordinator run there, and is that the address of its workers.listen ",
                        "(`ss -ltn` there lists who listens)?");
  }
  return absl::StrCat(strerror(error), ": is the machine up, is that its address, and is there a way to it (`ip route get ",
                      there->host, "`)?");
}

std::vector<std::string> Troubles(const std::vector<std::string>& targets, const std::vector<int>& errors,
                                  absl::Duration patience, const std::string& address) {
  std::vector<std::string> troubles;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (errors[i] == 0) continue;
    const std::string why = WhyNotReached(targets[i], errors[i], patience);
    troubles.push_back(targets[i] == address ? why : absl::StrCat(targets[i], ": ", why));
  }
  return troubles;
}

DialLook::DialLook(std::vector<std::string> targets, const Clock& clock)
    : targets_(std::move(targets)), thread_([this, &clock] {
        errors_ = TryToConnect(targets_, clock, kLookPatience, cancelled_);
        done_.Notify();
      }) {}

DialLook::~DialLook() {
  cancelled_.Notify();
  thread_.join();
}

bool DialLook::SomeoneAnswers() const { return std::find(errors_.begin(), errors_.end(), 0) != errors_.end(); }

}  // namespace motley::worker
