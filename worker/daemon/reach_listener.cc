#include "worker/daemon/reach_listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/data_way.h"
#include "worker/daemon/numeric_address.h"

namespace motley::worker {
namespace {

constexpr int kNoDescriptorPauseMs = 100;

}  // namespace

ReachListener::ReachListener(UniqueFd socket, UniqueFd card_socket, UniqueFd wake, int port, const NodeName& name,
                             const Clock& clock)
    : socket_(std::move(socket)),
      card_socket_(std::move(card_socket)),
      wake_(std::move(wake)),
      port_(port),
      line_(absl::StrCat(kGreeting, name.value(), "\n")),
      bursts_(clock) {
  thread_ = std::thread([this] { Loop(); });
}

absl::StatusOr<std::unique_ptr<ReachListener>> ReachListener::Start(const std::string& address, const NodeName& name,
                                                                    const Clock& clock) {
  AddrInfo info;
  if (absl::Status status = Resolve(address, 0, info); !status.ok()) return status;
  auto failed = [&] {
    const int error = errno;
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on worker.data_address ", address, ": ", strerror(error),
        error == EADDRNOTAVAIL ? "; no card of this machine has it: set it to the address of one that the other nodes "
                                 "reach (`ip -brief address` lists them), or wait until a card has it"
                               : ""));
  };
  UniqueFd fd(socket(info.list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (fd.valid()) SharePort(fd.get());
  if (!fd.valid() || !wake.valid() || bind(fd.get(), info.list->ai_addr, info.list->ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return failed();
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) return failed();
  // The port stands at the same place for both families.
  const int port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  UniqueFd on_card(ListenOnCardOf(address, fd.get(), SOMAXCONN));
  return std::unique_ptr<ReachListener>(new ReachListener(std::move(fd), std::move(on_card), std::move(wake), port, name, clock));
}

ReachListener::~ReachListener() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void ReachListener::Loop() {
  bool no_descriptor = false;
  while (true) {
    // Out of descriptors the socket stays readable: it is left alone for a moment.
    const auto open = [&](const UniqueFd& socket) { return no_descriptor || !socket.valid() ? -1 : socket.get(); };
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {open(socket_), POLLIN, 0}, {open(card_socket_), POLLIN, 0}};
    const int bursts_wait = bursts_.AppendTo(&fds);
    const int pause = bursts_wait < 0 ? kNoDescriptorPauseMs : std::min(bursts_wait, kNoDescriptorPauseMs);
    poll(fds.data(), fds.size(), no_descriptor ? pause : bursts_wait);
    if (fds[0].revents != 0) return;
    bursts_.Serve(fds.data() + 3);
    no_descriptor = !Accept(socket_) || (card_socket_.valid() && !Accept(card_socket_));
  }
}

bool ReachListener::Accept(const UniqueFd& listener) {
  UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!peer.valid()) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  // A new connection's buffer takes the line at once.
  (void)!send(peer.get(), line_.data(), line_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  bursts_.Add(std::move(peer));
  return true;
}

}  // namespace motley::worker
