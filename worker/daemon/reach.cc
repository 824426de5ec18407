#include "worker/daemon/reach.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/data_way.h"
#include "common/base/logging.h"
#include "worker/daemon/burst.h"
#include "worker/daemon/numeric_address.h"
#include "worker/daemon/reach_listener.h"

namespace motley::worker {
namespace {

constexpr size_t kLongestLine = 128;  // greeting and name
constexpr size_t kAtATime = 256;      // connections; well below the limit of descriptors
constexpr absl::Duration kPatience = absl::Seconds(3);
// A lost packet or two are sent again within it.
constexpr absl::Duration kLargePatience = absl::Milliseconds(1500);
constexpr size_t kMaxWaiting = 32;

// Of descriptors or memory: it says nothing of the node that was to be reached.
bool IsShortage(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

// One connection under way.
class Attempt {
 public:
  Attempt(const ReachTarget& target, const std::string& own, const Clock& clock)
      : target_(target), own_(own), clock_(clock), begun_(clock.Now()), held_(!own.empty()) {
    Begin();
  }
  // As ranks do: where nobody answers whoever leaves by the own address's card, another card may lead there.
  void BeginByAnyCard() {
    if (done_ || connected_ || !held_) return;
    held_ = false;
    Begin();
  }
  // One that had no descriptor may get one now.
  void BeginAgain() {
    if (!done_ && !socket_.valid()) Begin();
  }
  void Begin() {
    AddrInfo info;
    if (absl::Status status = Resolve(target_.address, target_.port, info); !status.ok()) {
      return Fail(std::string(status.message()));
    }
    socket_.Reset(socket(info.list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_.valid()) {
      const int error = errno;
      if (!IsShortage(error)) return Fail(strerror(error));
      shortage_ = strerror(error);
      return;
    }
    if (held_) {
      sockaddr_storage peer{};
      memcpy(&peer, info.list->ai_addr, info.list->ai_addrlen);
      way_ = LeaveFrom(socket_.get(), own_, peer);
    }
    if (connect(socket_.get(), info.list->ai_addr, info.list->ai_addrlen) != 0 && errno != EINPROGRESS) {
      return Fail(strerror(errno));
    }
  }

  bool done() const { return done_; }
  bool has_socket() const { return socket_.valid(); }
  // Why it could not be tried to the end; empty: it was.
  const std::string& not_tried() const { return not_tried_; }
  pollfd Poll() const { return {socket_.get(), static_cast<short>(connected_ ? POLLIN : POLLOUT), 0}; }
  ReachAnswer answer() const {
    const bool reached = error_.empty();
    return {target_.node, error_, reached ? absl::ToDoubleSeconds(connect_time_) : 0, rate_, reached ? OtherCard() : ""};
  }

  void OnReady() {
    if (!connected_) {
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return Fail(strerror(error));
      connected_ = true;
      if (const std::string why = OtherCard(); !why.empty()) {
        LogWarning(absl::StrCat("what goes to node ", target_.node.value(), " at ", CleanLine(target_.address),
                                " may leave by another card than that of ", own_, ": ", why));
      }
      connect_time_ = clock_.Now() - begun_;
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
    if (!socket_.valid()) {
      done_ = true;
      not_tried_ = shortage_;
      return;
    }
    const std::string waited = absl::StrFormat("%.0f s", absl::ToDoubleSeconds(patience));
    Fail(connected_ ? absl::StrCat("connected, but nobody said a word for ", waited)
                    : absl::StrCat("no answer for ", waited, "; is a firewall in between?"));
  }

  // The same, with time left.
  void TryLargePackets(const std::string& secret, absl::Duration patience, const absl::Notification& cancelled) {
    if (!error_.empty() || !not_tried_.empty() || patience <= absl::ZeroDuration()) return;
    const absl::Status status = worker::TryLargePackets(socket_.get(), secret, clock_, patience, cancelled);
    if (!status.ok()) Fail(std::string(status.message()));
  }

  // Once the node has said its name.
  void SendBurst(const std::string& secret, absl::Duration patience, const absl::Notification& cancelled) {
    if (!error_.empty() || !not_tried_.empty()) return;
    const absl::StatusOr<double> rate = worker::SendBurst(socket_.get(), secret, clock_, patience, cancelled);
    if (rate.ok()) {
      rate_ = *rate;
    } else {
      error_ = std::string(rate.status().message());
    }
  }

 private:
  // Why the connection may not be held to the own address's card; empty: it is.
  std::string OtherCard() const {
    if (own_.empty()) return "";
    return held_ ? way_ : "by that one it was not reached";
  }
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
  const std::string& own_;
  const Clock& clock_;
  const absl::Duration begun_;
  bool held_;        // to the own address and its card
  std::string way_;  // what was against that; empty: nothing
  absl::Duration connect_time_;
  UniqueFd socket_;
  bool connected_ = false, done_ = false;
  double rate_ = 0;
  std::string line_, error_, shortage_, not_tried_;
};

void CheckSome(std::vector<Attempt>& attempts, const Clock& clock, absl::Duration patience, const absl::Notification& cancelled) {
  const absl::Duration begun = clock.Now(), end = begun + patience;
  while (true) {
    if (clock.Now() - begun > patience / 2) {
      for (Attempt& attempt : attempts) attempt.BeginByAnyCard();
    }
    std::vector<pollfd> fds;
    std::vector<Attempt*> open;
    bool all_done = true;
    for (Attempt& attempt : attempts) {
      attempt.BeginAgain();
      if (attempt.done()) continue;
      all_done = false;
      if (!attempt.has_socket()) continue;  // poll takes no more than there may be descriptors
      fds.push_back(attempt.Poll());
      open.push_back(&attempt);
    }
    const absl::Duration left = end - clock.Now();
    if (all_done || left <= absl::ZeroDuration() || cancelled.HasBeenNotified()) break;
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

ReachReport CheckReach(const ReachCheckCommand& check, const std::string& own, const Clock& clock, absl::Duration patience,
                       const absl::Notification& cancelled) {
  ReachReport report{check.check_id, {}};
  size_t not_tried = 0;
  std::string why;
  const size_t at_a_time = check.burst ? 1 : kAtATime;
  for (size_t begin = 0; begin < check.targets.size() && !cancelled.HasBeenNotified(); begin += at_a_time) {
    std::vector<Attempt> attempts;
    const size_t end = std::min(begin + at_a_time, check.targets.size());
    attempts.reserve(end - begin);
    for (size_t i = begin; i < end; ++i) attempts.emplace_back(check.targets[i], own, clock);
    CheckSome(attempts, clock, patience, cancelled);
    if (check.burst) attempts[0].SendBurst(check.secret, patience, cancelled);
    const absl::Duration large_until = clock.Now() + patience;
    for (Attempt& attempt : attempts) {
      if (check.large) attempt.TryLargePackets(check.secret, std::min(kLargePatience, large_until - clock.Now()), cancelled);
    }
    for (const Attempt& attempt : attempts) {
      if (attempt.not_tried().empty()) {
        report.answers.push_back(attempt.answer());
      } else {
        ++not_tried;
        why = attempt.not_tried();
      }
    }
  }
  if (not_tried > 0) {
    LogError(absl::StrCat("whether ", Count(not_tried, "node is", "nodes are"), " reached could not be tried: ", why,
                          "; give this worker more open files or memory (ulimit -n, the limits of its service)"));
  }
  return report;
}

ReachChecker::ReachChecker(std::string own, const Clock& clock, Outbox& outbox)
    : own_(std::move(own)), clock_(clock), outbox_(outbox), thread_([this] { Loop(); }) {}

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
    ReachReport report = CheckReach(check, own_, clock_, kPatience, cancelled_);
    if (!cancelled_.HasBeenNotified()) outbox_.Push(std::move(report));
  }
}

}  // namespace motley::worker
