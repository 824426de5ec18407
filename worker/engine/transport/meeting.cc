#include "worker/engine/transport/meeting.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/data_way.h"
#include "common/base/fault.h"
#include "common/base/hmac.h"
#include "common/base/status_macros.h"
#include "worker/engine/transport/meeting_words.h"

namespace motley::engine {
namespace {

// TCP repeats a lost SYN after 1 s and after 3 s: one loss is forgiven, then a new socket is quicker than TCP's growing pauses.
constexpr absl::Duration kCallPatience = absl::Seconds(3);
constexpr absl::Duration kCallPause = absl::Milliseconds(200);  // after a refusal
// How often `stopped` is asked.
constexpr absl::Duration kTurn = absl::Milliseconds(100);
// Callers that have not shown a secret yet; beyond it the oldest goes. A peer's Hello comes in the packet after its SYN, so it is
// strangers that get old.
constexpr size_t kMaxCallers = 64;
constexpr int kBacklog = 1024;  // the kernel caps it at net.core.somaxconn
// A connection whose bytes nobody acknowledged for so long is lost: the peer's machine or the network is gone. A peer that
// computes or waits still acknowledges. Without it TCP waits a quarter of an hour, and resumes a healed link up to half a minute
// late.
constexpr absl::Duration kSilence = absl::Seconds(10);

absl::StatusOr<std::pair<sockaddr_storage, socklen_t>> SocketAddress(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.c_str(), absl::StrCat(port).c_str(), &hints, &found); error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is no numeric address: ", gai_strerror(error)));
  }
  std::pair<sockaddr_storage, socklen_t> result{};
  std::memcpy(&result.first, found->ai_addr, found->ai_addrlen);
  result.second = found->ai_addrlen;
  freeaddrinfo(found);
  return result;
}

std::string ErrorText(int error) { return std::strerror(error); }

// Small messages on a fresh socket: they fit its buffer, so a part sent is an error as good as any.
bool SendAll(int fd, const std::string& message) {
  return send(fd, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(message.size());
}

enum class Reading { kMore, kComplete, kClosed };

// Fills `got` up to `bytes`, never beyond: what follows is not the meeting's.
Reading ReadUpTo(int fd, size_t bytes, std::string& got) {
  char buffer[kHelloBytes];
  while (got.size() < bytes) {
    const ssize_t n = recv(fd, buffer, bytes - got.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Reading::kMore;
    if (n <= 0) return Reading::kClosed;
    got.append(buffer, n);
  }
  return Reading::kComplete;
}

// For the connection's whole life: losses are noticed, small messages leave at once.
void Tune(int fd) {
  const auto set = [fd](int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof(value)); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(absl::ToInt64Milliseconds(kSilence)));
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(absl::ToInt64Seconds(kSilence / 2)));
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, static_cast<int>(absl::ToInt64Seconds(kSilence / 2)));
}

// Somebody who connected to us.
struct Caller {
  FileDescriptor socket;
  absl::Duration since;
  std::string got;
  int peer = -1;  // whose Hello it was; we wait for its confirmation
  std::string hello = {}, welcome = {};
};

// One connection to a peer.
struct Pair {
  const MeetingPeer& peer;
  const bool we_call;
  FileDescriptor met{};  // set: done
  MessageKeys keys{};    // then
  // The call under way, if we call.
  FileDescriptor call{};
  int calls = 0;
  std::string way{};  // what was against leaving from our own address by its card; empty: nothing
  bool hello_sent = false;
  std::string hello{}, got{};
  absl::Duration until{};  // of the call, or of the pause before the next one
  std::string seen;        // what became of the last call, for people
};

// One Meet under way. Single-threaded.
class MeetingRun {
 public:
  MeetingRun(int rank, const MeetingPoint& point, std::array<int, 2> listeners, const std::vector<MeetingPeer>& peers)
      : rank_(rank), point_(point), listeners_(listeners) {
    for (const MeetingPeer& peer : peers) {
      const bool we_call = rank < peer.rank;
      pairs_.push_back(Pair{.peer = peer, .we_call = we_call, .seen = we_call ? "not called yet" : "it did not connect"});
    }
  }

  bool done() const {
    for (const Pair& pair : pairs_) {
      if (pair.met.get() < 0) return false;
    }
    return true;
  }

  void Turn(absl::Duration at_most) {
    const absl::Duration now = clock_.Now();
    for (Pair& pair : pairs_) {
      if (pair.we_call && pair.met.get() < 0 && now >= pair.until) StartCall(pair, now);
    }
    WaitForEvents(at_most);
    for (const int listener : listeners_) Accept(listener);
    for (auto caller = callers_.begin(); caller != callers_.end();) caller = Hear(*caller) ? caller + 1 : callers_.erase(caller);
    for (Pair& pair : pairs_) {
      if (pair.call.get() >= 0) ContinueCall(pair);
    }
  }

  // "b/gpu0 at 10.0.0.2:4711 (connecting: Connection refused)" of those who were not met.
  std::string Missing() const {
    std::set<std::string> missing;  // several channels of a peer fail alike
    for (const Pair& pair : pairs_) {
      if (pair.met.get() >= 0) continue;
      missing.insert(absl::StrCat(pair.peer.device.value(), " at ", pair.peer.point.address, ":", pair.peer.point.port, " (",
                                  pair.seen, ")"));
    }
    return absl::StrJoin(missing, ", ");
  }

  Met TakeResult() {
    Met met;
    for (Pair& pair : pairs_) {
      if (!pair.way.empty())
        met.notes.insert(absl::StrCat("bytes to ", pair.peer.device.value(), " go as the kernel chooses: ", pair.way));
      Tune(pair.met.get());
      met.sockets[{pair.peer.rank, pair.peer.channel}] = std::move(pair.met);
      met.keys[{pair.peer.rank, pair.peer.channel}] = std::move(pair.keys);
    }
    met.turned_away = turned_away_ + static_cast<int>(callers_.size());
    return met;
  }

 private:
  void WaitForEvents(absl::Duration at_most) {
    std::vector<pollfd> events;
    for (const int listener : listeners_) events.push_back({listener, POLLIN, 0});  // poll passes a negative one over
    for (const Caller& caller : callers_) events.push_back({caller.socket.get(), POLLIN, 0});
    for (const Pair& pair : pairs_) {
      if (pair.call.get() >= 0) events.push_back({pair.call.get(), static_cast<short>(pair.hello_sent ? POLLIN : POLLOUT), 0});
    }
    poll(events.data(), events.size(), static_cast<int>(absl::ToInt64Milliseconds(at_most)));
  }

  void Accept(int listener) {
    for (;;) {
      FileDescriptor socket(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.get() < 0) return;  // nobody, or no descriptor left: the next turn tries again
      callers_.push_back({.socket = std::move(socket), .since = clock_.Now(), .got = ""});
      if (!Hear(callers_.back())) callers_.pop_back();
      if (callers_.size() > kMaxCallers) DropOldestStranger();
    }
  }

  void DropOldestStranger() {
    for (auto caller = callers_.begin(); caller != callers_.end(); ++caller) {
      if (caller->peer >= 0) continue;
      callers_.erase(caller);
      ++turned_away_;
      return;
    }
  }

  // False: the caller is finished with, met or turned away.
  bool Hear(Caller& caller) {
    if (caller.peer < 0) {
      const Reading reading = ReadUpTo(caller.socket.get(), kHelloBytes, caller.got);
      if (reading == Reading::kMore && clock_.Now() - caller.since < kCallPatience) return true;
      Pair* pair = reading == Reading::kComplete ? WhoseHello(caller.got) : nullptr;
      if (pair == nullptr) {
        ++turned_away_;
        return false;
      }
      // An older connection of the same peer, given up by it, closes by itself.
      const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
      if (!nonce.ok()) return false;  // it calls again
      caller.hello = std::move(caller.got);
      caller.welcome = Welcome(MeantBy(*pair), caller.hello, *nonce);
      if (!SendAll(caller.socket.get(), caller.welcome)) return false;
      pair->seen = "it connected, but did not confirm";
      caller.peer = static_cast<int>(pair - pairs_.data());
      caller.got.clear();
    }
    // No patience here: the peer may count this connection as met already, and only TCP knows whether it still is.
    const Reading reading = ReadUpTo(caller.socket.get(), kConfirmBytes, caller.got);
    if (reading == Reading::kMore) return true;
    Pair& pair = pairs_[caller.peer];
    if (reading == Reading::kComplete && IsConfirm(MeantBy(pair), caller.hello, caller.welcome, caller.got) &&
        MakeKeys(pair, caller.hello, caller.welcome)) {
      pair.met = std::move(caller.socket);
    }
    return false;
  }

  bool MakeKeys(Pair& pair, const std::string& hello, const std::string& welcome) {
    const absl::StatusOr<ConnectionKeys> keys = KeysOf(MeantBy(pair), hello, welcome);
    if (!keys.ok()) return pair.seen = std::string(keys.status().message()), false;
    pair.keys = pair.we_call ? MessageKeys{keys->callers, keys->callees} : MessageKeys{keys->callees, keys->callers};
    return true;
  }

  MeetingPair MeantBy(const Pair& pair) const {
    if (pair.we_call) return {point_.secret, pair.peer.point.secret, rank_, pair.peer.rank, pair.peer.channel};
    return {pair.peer.point.secret, point_.secret, pair.peer.rank, rank_, pair.peer.channel};
  }

  // Null: nobody that we wait for.
  Pair* WhoseHello(const std::string& hello) {
    for (Pair& pair : pairs_) {
      if (!pair.we_call && pair.met.get() < 0 && IsHello(MeantBy(pair), hello)) return &pair;
    }
    return nullptr;
  }

  void StartCall(Pair& pair, absl::Duration now) {
    if (pair.call.get() >= 0) pair.seen = pair.hello_sent ? "connected, but it did not answer" : "connecting: no answer";
    pair.hello_sent = false;
    pair.got.clear();
    pair.until = now + kCallPatience;
    const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
    if (!nonce.ok()) return EndCall(pair, std::string(nonce.status().message()));
    pair.hello = Hello(MeantBy(pair), *nonce);
    const auto address = SocketAddress(pair.peer.point.address, pair.peer.point.port);
    if (!address.ok()) return EndCall(pair, std::string(address.status().message()));
    pair.call = FileDescriptor(socket(address->first.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (pair.call.get() < 0) return EndCall(pair, absl::StrCat("opening a socket: ", ErrorText(errno)));
    // Every other call is left to the kernel: a filter that wants another card's address (rp_filter = 1) must not part them.
    const bool held = pair.calls++ % 2 == 0;
    pair.way = held ? LeaveFrom(pair.call.get(), point_.address, address->first)
                    : absl::StrCat("from ", point_.address, " by its own card it was not reached");
    if (connect(pair.call.get(), reinterpret_cast<const sockaddr*>(&address->first), address->second) != 0 &&
        errno != EINPROGRESS) {
      EndCall(pair, absl::StrCat("connecting: ", ErrorText(errno)));
    }
  }

  void EndCall(Pair& pair, const std::string& seen) {
    pair.call = FileDescriptor();
    pair.seen = seen;
    pair.until = clock_.Now() + kCallPause;
  }

  void ContinueCall(Pair& pair) {
    const int fd = pair.call.get();
    if (!pair.hello_sent) {
      if (!SendAll(fd, pair.hello)) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) EndCall(pair, absl::StrCat("connecting: ", ErrorText(errno)));
        return;  // EAGAIN: still connecting
      }
      pair.hello_sent = true;
    }
    const Reading reading = ReadUpTo(fd, kWelcomeBytes, pair.got);
    if (reading == Reading::kMore) return;
    if (reading == Reading::kClosed) return EndCall(pair, "it closed the connection");
    if (!IsWelcome(MeantBy(pair), pair.hello, pair.got)) return EndCall(pair, "something else than the rank answers there");
    if (!MakeKeys(pair, pair.hello, pair.got)) return EndCall(pair, pair.seen);
    if (!SendAll(fd, Confirm(MeantBy(pair), pair.hello, pair.got)))
      return EndCall(pair, absl::StrCat("confirming: ", ErrorText(errno)));
    pair.met = std::move(pair.call);
  }

  const int rank_;
  const MeetingPoint& point_;
  const std::array<int, 2> listeners_;
  SystemClock clock_;
  std::vector<Pair> pairs_;
  std::deque<Caller> callers_;  // oldest first
  int turned_away_ = 0;
};

}  // namespace

absl::StatusOr<Meeting> Meeting::Open(int rank, const DeviceId& device, const std::string& address) {
  const auto failed = [&](const char* what) {
    // An interface that is down is the network: waited for.
    return WithFault(absl::UnavailableError(absl::StrCat(what, " for ", device.value(), " at ", address, ": ", ErrorText(errno))),
                     Fault::kPeer);
  };
  MOTLEY_ASSIGN_OR_RETURN(auto to_bind, SocketAddress(address, 0));
  FileDescriptor listener(socket(to_bind.first.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (listener.get() < 0) return failed("opening a socket");
  SharePort(listener.get());
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&to_bind.first), to_bind.second) != 0) {
    return failed("binding a port");
  }
  if (listen(listener.get(), kBacklog) != 0) return failed("listening");
  socklen_t length = sizeof(to_bind.first);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&to_bind.first), &length) != 0) return failed("reading the port");
  // The port has the same place in both families.
  const int port = ntohs(reinterpret_cast<const sockaddr_in*>(&to_bind.first)->sin_port);
  MOTLEY_ASSIGN_OR_RETURN(std::string secret, RandomBytes(kSecretBytes));
  FileDescriptor card_listener(ListenOnCardOf(address, listener.get(), kBacklog));
  return Meeting(rank, device, std::move(listener), std::move(card_listener), {address, port, std::move(secret)});
}

absl::StatusOr<Met> Meeting::Meet(const std::vector<MeetingPeer>& peers, absl::Duration limit,
                                  const std::function<bool()>& stopped) {
  const SystemClock clock;
  const absl::Duration deadline = clock.Now() + limit;
  MeetingRun run(rank_, point_, {listener_.get(), card_listener_.get()}, peers);
  while (!run.done()) {
    if (stopped != nullptr && stopped()) return absl::CancelledError("told to stop while meeting the peers");
    const absl::Duration left = deadline - clock.Now();
    if (left <= absl::ZeroDuration()) {
      return WithFault(
          absl::UnavailableError(absl::StrCat(device_.value(), " at ", point_.address, ":", point_.port, " did not meet within ",
                                              absl::FormatDuration(limit), ": ", run.Missing())),
          Fault::kPeer);
    }
    run.Turn(std::min(left, kTurn));
  }
  return run.TakeResult();
}

}  // namespace motley::engine
