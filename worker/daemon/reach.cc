#include "worker/daemon/reach.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/clean_text.h"

namespace motley::worker {
namespace {

constexpr char kGreeting[] = "motley-node ";
constexpr size_t kLongestLine = 128;    // greeting and name
constexpr size_t kAtATime = 256;        // connections; well below the limit of descriptors
constexpr int kNoDescriptorPauseMs = 100;
constexpr absl::Duration kSlice = absl::Milliseconds(100);  // how late a cancellation may be noticed
constexpr absl::Duration kPatience = absl::Seconds(3);
constexpr size_t kMaxWaiting = 32;

struct AddrInfo {
  addrinfo* list = nullptr;
  ~AddrInfo() {
    if (list != nullptr) freeaddrinfo(list);
  }
};

// Numeric addresses only: nothing here waits for a name server.
absl::Status Resolve(const std::string& address, int port, AddrInfo& out) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.c_str(), absl::StrCat(port).c_str(), &hints, &out.list) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", CleanLine(address), "' is not a numeric address"));
}

// One connection under way.
class Attempt {
 public:
  explicit Attempt(const ReachTarget& target) : target_(target) { Begin(); }
  void Begin() {
    AddrInfo info;
    if (absl::Status status = Resolve(target_.address, target_.port, info); !status.ok()) {
      return Fail(std::string(status.message()));
    }
    socket_.Reset(socket(info.list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_.valid()) return Fail(strerror(errno));
    if (connect(socket_.get(), info.list->ai_addr, info.list->ai_addrlen) != 0 && errno != EINPROGRESS) {
      return Fail(strerror(errno));
    }
  }

  bool done() const { return done_; }
  pollfd Poll() const { return {socket_.get(), static_cast<short>(connected_ ? POLLIN : POLLOUT), 0}; }
  ReachAnswer answer() const { return {target_.node, error_}; }

  void OnReady() {
    if (!connected_) {
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return Fail(strerror(error));
      connected_ = true;
      return;
    }
    char buffer[kLongestLine];
    const ssize_t n = recv(socket_.get(), buffer, sizeof(buffer), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) line_.append(buffer, static_cast<size_t>(n));
    const size_t end = line_.find('\n');
    if (end != std::string::npos) return OnLine(std::string_view(line_).substr(0, end));
    if (n <= 0 || line_.size() > kLongestLine) Fail("something that is not a worker answered");
  }

  void OnTimeout(absl::Duration patience) {
    Fail(absl::StrFormat(
        connected_ ? "connected, but nobody said a word for %.0f s" : "no answer for %.0f s; is a firewall in between?",
        absl::ToDoubleSeconds(patience)));
  }

 private:
  void OnLine(std::string_view line) {
    done_ = true;
    const std::string wanted = kGreeting + target_.node.value();
    if (line != wanted) Fail(absl::StrCat("another answered: '", CleanLine(line), "'"));
  }
  void Fail(const std::string& why) {
    done_ = true;
    error_ = absl::StrCat("node ", target_.node.value(), " is not reached at ", CleanLine(target_.address), " port ",
                          target_.port, ": ", why);
  }

  const ReachTarget& target_;
  UniqueFd socket_;
  bool connected_ = false, done_ = false;
  std::string line_, error_;
};

void CheckSome(std::vector<Attempt>& attempts, const Clock& clock, absl::Duration patience, const absl::Notification& cancelled) {
  const absl::Duration end = clock.Now() + patience;
  while (true) {
    std::vector<pollfd> fds;
    std::vector<Attempt*> open;
    for (Attempt& attempt : attempts) {
      if (attempt.done()) continue;
      fds.push_back(attempt.Poll());
      open.push_back(&attempt);
    }
    const absl::Duration left = end - clock.Now();
    if (open.empty() || left <= absl::ZeroDuration() || cancelled.HasBeenNotified()) break;
    poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kSlice))) + 1);
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) open[i]->OnReady();
    }
  }
  for (Attempt& attempt : attempts) {
    if (!attempt.done()) attempt.OnTimeout(patience);
  }
}

}  // namespace

ReachListener::ReachListener(UniqueFd socket, UniqueFd wake, int port, const NodeName& name)
    : socket_(std::move(socket)), wake_(std::move(wake)), port_(port), line_(absl::StrCat(kGreeting, name.value(), "\n")) {
  thread_ = std::thread([this] { Loop(); });
}

absl::StatusOr<std::unique_ptr<ReachListener>> ReachListener::Start(const std::string& address, const NodeName& name) {
  AddrInfo info;
  if (absl::Status status = Resolve(address, 0, info); !status.ok()) return status;
  auto failed = [&] {
    return absl::UnavailableError(absl::StrCat("cannot listen on worker.data_address ", address, ": ", strerror(errno)));
  };
  UniqueFd fd(socket(info.list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid() || !wake.valid() || bind(fd.get(), info.list->ai_addr, info.list->ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return failed();
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) return failed();
  // The port stands at the same place for both families.
  const int port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  return std::unique_ptr<ReachListener>(new ReachListener(std::move(fd), std::move(wake), port, name));
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
    pollfd fds[] = {{wake_.get(), POLLIN, 0}, {no_descriptor ? -1 : socket_.get(), POLLIN, 0}};
    poll(fds, 2, no_descriptor ? kNoDescriptorPauseMs : -1);
    if (fds[0].revents != 0) return;
    const UniqueFd peer(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    no_descriptor = !peer.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
    // A new connection's buffer takes the line at once.
    if (peer.valid()) (void)!send(peer.get(), line_.data(), line_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

ReachReport CheckReach(const ReachCheckCommand& check, const Clock& clock, absl::Duration patience,
                       const absl::Notification& cancelled) {
  ReachReport report{check.check_id, {}};
  for (size_t begin = 0; begin < check.targets.size() && !cancelled.HasBeenNotified(); begin += kAtATime) {
    std::vector<Attempt> attempts;
    const size_t end = std::min(begin + kAtATime, check.targets.size());
    attempts.reserve(end - begin);
    for (size_t i = begin; i < end; ++i) attempts.emplace_back(check.targets[i]);
    CheckSome(attempts, clock, patience, cancelled);
    for (const Attempt& attempt : attempts) report.answers.push_back(attempt.answer());
  }
  return report;
}

ReachChecker::ReachChecker(const Clock& clock, Outbox& outbox) : clock_(clock), outbox_(outbox), thread_([this] { Loop(); }) {}

ReachChecker::~ReachChecker() {
  {
    absl::MutexLock lock(&mutex_);  // the loop looks again when the lock is free
    cancelled_.Notify();
  }
  thread_.join();
}

void ReachChecker::Check(ReachCheckCommand check) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(std::move(check));
  if (waiting_.size() > kMaxWaiting) waiting_.pop_front();
}

void ReachChecker::Loop() {
  while (true) {
    ReachCheckCommand check;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ReachChecker::HasWork));
      if (cancelled_.HasBeenNotified()) return;
      check = std::move(waiting_.front());
      waiting_.pop_front();
    }
    ReachReport report = CheckReach(check, clock_, kPatience, cancelled_);
    if (!cancelled_.HasBeenNotified()) outbox_.Push(std::move(report));
  }
}

}  // namespace motley::worker
