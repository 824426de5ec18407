#include "coordinator/rpc/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "coordinator/rpc/endpoint.h"

namespace motley::coordinator {
namespace {

constexpr int kRetryMs = 100;
constexpr int kCrowdedMs = 5;
constexpr int kSilentSeconds = 3;
// Of the store, the log, gRPC's own, the metrics listener and its scrapers.
constexpr size_t kReservedDescriptors = 64;
// Taken in a row from one socket, so that a flood there does not starve the others.
constexpr int kMostInARow = 64;
constexpr absl::Duration kSaidAgain = absl::Minutes(1);
constexpr size_t kMostRemembered = 1000;  // accounts of which it is remembered

bool IsExhaustion(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

// The peer is this process: known of Unix sockets alone.
bool IsOurselves(int fd) {
  ucred peer = {};
  socklen_t length = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid == getpid();
}

// In HTTP/1.1, which whoever speaks gRPC or HTTP does not take for an answer of a coordinator that serves. The client of ours
// reads it (client/refusal).
void Tell(int fd, const std::string& why) {
  const std::string answer =
      absl::StrCat("HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n",
                   "Content-Length: ", why.size() + 1, "\r\n\r\n", why, "\n");
  (void)!send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(fd, SHUT_WR);
  // What the other end has sent already would make the kernel reset the connection, and the answer be lost.
  char greeting[1024];
  for (int i = 0; i < kMostInARow && recv(fd, greeting, sizeof(greeting), MSG_DONTWAIT) > 0; ++i) {
  }
}

}  // namespace

void FitConnections(size_t descriptors, size_t* people, size_t* workers) {
  const size_t room = std::max<size_t>(descriptors, kReservedDescriptors + 8) - kReservedDescriptors;
  if (*people + *workers <= room) return;
  *people = std::max<size_t>(1, std::min(*people, room / 2));
  *workers = std::max<size_t>(1, std::min(*workers, room - *people));
}

Acceptor::Acceptor(std::vector<Server> servers) : servers_(std::move(servers)) {
  if (pipe2(wake_, O_CLOEXEC) != 0) LogError(absl::StrCat("no pipe for the acceptor: ", strerror(errno)));
  for (Server& server : servers_) {
    seats_.push_back(std::make_unique<Seats>(server.seats));
    for (Door& door : server.doors) {
      if (door.by_tls) handshakes_.push_back(std::make_unique<HandshakeBound>(*server.busy, kLongestTlsHandshake));
      HandshakeBound* const handshakes = door.by_tls ? handshakes_.back().get() : nullptr;
      for (const ListeningSocket& socket : door.sockets) {
        // Who connects and says nothing, as a port scan does, waits in the kernel.
        if (door.by_tls) setsockopt(socket.fd(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &kSilentSeconds, sizeof(kSilentSeconds));
        listeners_.push_back({&server, &door, seats_.back().get(), handshakes, socket.fd()});
      }
    }
  }
  thread_ = std::thread([this] { Run(); });
}

Acceptor::~Acceptor() {
  close(wake_[1]);
  thread_.join();
  close(wake_[0]);
}

void Acceptor::Say(bool* said, const std::string& text) {
  if (*said) return;
  *said = true;
  LogWarning(text);
}

void Acceptor::SayFull(const Listener& listener, const Guest& guest, const std::string& why) {
  const absl::Duration now = clock_.Now();
  const std::pair key(listener.server->name, guest.uid);
  const auto said = said_full_.find(key);
  if (said != said_full_.end() && now - said->second < kSaidAgain) return;
  if (said_full_.size() >= kMostRemembered) said_full_.clear();
  said_full_.insert_or_assign(key, now);
  LogWarning(absl::StrCat("a connection to the server for ", listener.server->name, " is not taken: ", why));
}

void Acceptor::Run() {
  std::vector<pollfd> polled(listeners_.size() + 1);
  bool exhausted = false;
  while (true) {
    polled[0] = {wake_[0], POLLIN, 0};
    // Without descriptors, or room for a handshake, the listeners would be ready all the time.
    bool crowded = false;
    for (size_t i = 0; i < listeners_.size(); ++i) {
      const bool waits = listeners_[i].handshakes != nullptr && !listeners_[i].handshakes->HasRoom(clock_.Now());
      crowded = crowded || waits;
      polled[i + 1] = {exhausted || waits ? -1 : listeners_[i].fd, POLLIN, 0};
    }
    poll(polled.data(), polled.size(), exhausted ? kRetryMs : crowded ? kCrowdedMs : -1);
    if (polled[0].revents != 0) return;
    const bool was_exhausted = std::exchange(exhausted, false);
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if ((was_exhausted || polled[i + 1].revents != 0) && !Take(listeners_[i])) exhausted = true;
    }
    if (was_exhausted && !exhausted && std::exchange(said_exhausted_, false))
      LogInfo("descriptors are free again; connections are taken");
  }
}

bool Acceptor::Take(const Listener& listener) {
  for (int i = 0; i < kMostInARow; ++i) {
    if (listener.handshakes != nullptr && !listener.handshakes->HasRoom(clock_.Now())) return true;
    const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (!IsExhaustion(errno)) return true;  // nobody waits, or whoever did has gone
      Say(&said_exhausted_,
          absl::StrCat("no connection can be taken: ", strerror(errno), "; those that wait are taken when descriptors are free"));
      return false;
    }
    const Chosen chosen = listener.door->choose(fd);
    if (chosen.grpc == nullptr) {
      close(fd);
      continue;
    }
    if (const std::string why = listener.seats->MakeRoom(chosen.guest); !why.empty() && !IsOurselves(fd)) {
      SayFull(listener, chosen.guest, why);
      if (listener.server->tells) Tell(fd, why);
      close(fd);
      continue;
    }
    listener.seats->Add(fd, chosen.guest);
    if (listener.handshakes != nullptr) listener.handshakes->Add(fd, clock_.Now());
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    chosen.grpc->HandleNewConnection(&connection);
  }
  return true;
}

}  // namespace motley::coordinator
