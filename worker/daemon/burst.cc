#include "worker/daemon/burst.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/hmac.h"
#include "common/base/status_macros.h"

namespace motley::worker {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kLongestAnswer = 128;

// Nothing on the way shall make it smaller.
std::string Noise() {
  std::string noise(kPieceBytes, '\0');
  uint64_t x = 0x9E3779B97F4A7C15;
  for (char& c : noise) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;  // xorshift64
    c = static_cast<char>(x);
  }
  return noise;
}

absl::Status Broke(const char* what) { return absl::UnavailableError(absl::StrCat("the burst ended early: ", what)); }

// Sends what the kernel takes now of `head`, then of the noise.
absl::Status SendSome(int socket, const std::string& noise, int64_t bytes, std::string& head, int64_t& sent) {
  const bool begun = head.empty();
  const char* data = begun ? noise.data() : head.data();
  const size_t size = begun ? static_cast<size_t>(std::min<int64_t>(kPieceBytes, bytes - sent)) : head.size();
  const ssize_t n = send(socket, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? absl::OkStatus() : Broke(strerror(errno));
  if (!begun) {
    head.erase(0, static_cast<size_t>(n));
  } else if ((sent += n) == bytes) {
    shutdown(socket, SHUT_WR);
  }
  return absl::OkStatus();
}

absl::Status NoLargePackets(absl::Duration waited) {
  return absl::DeadlineExceededError(absl::StrFormat(
      "it answers, but nothing of what was sent in large packets was acknowledged for %.1f s: a router, tunnel or "
      "switch on the way takes only smaller ones (try `ping -M do -s 1472`, and 8972 where cards have an MTU of "
      "9000; set all cards and switches to one MTU, and let ICMP pass)",
      absl::ToDoubleSeconds(waited)));
}

// Sends so many bytes; what the other answers, a line.
absl::StatusOr<std::string> Exchange(int socket, const std::string& secret, int64_t bytes, const Clock& clock,
                                     absl::Duration patience, const absl::Notification& cancelled) {
  static const std::string noise = Noise();
  const absl::StatusOr<std::string> nonce = RandomBytes(kBurstNonceDigits / 2);
  if (!nonce.ok()) return nonce.status();
  std::string head = absl::StrCat(BurstLine(secret, absl::BytesToHexString(*nonce)), "\n"), answer;
  int64_t sent = 0;
  const absl::Duration begun = clock.Now(), end = begun + patience;
  // Closing does not wait for what is on the way, nor send it.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  while (true) {
    if (cancelled.HasBeenNotified()) return absl::CancelledError("stopping");
    const absl::Duration left = end - clock.Now();
    if (left <= absl::ZeroDuration()) return NoLargePackets(patience);
    pollfd fd{socket, static_cast<short>(sent < bytes ? POLLIN | POLLOUT : POLLIN), 0};
    poll(&fd, 1, static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kSlice))) + 1);
    if ((fd.revents & (POLLIN | POLLERR | POLLHUP)) != 0) {
      char buffer[kLongestAnswer];
      const ssize_t n = recv(socket, buffer, sizeof(buffer), MSG_DONTWAIT);
      const bool ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
      // A taker that refuses closes at once; one that hears nothing behind the first line waits.
      if (ended && clock.Now() - begun > kTakersPatience / 2) return NoLargePackets(clock.Now() - begun);
      if (ended && n < 0) return Broke(strerror(errno));
      if (n == 0) return Broke("the node closed the connection; it takes none without the secret of an examination");
      if (n > 0) answer.append(buffer, static_cast<size_t>(n));
      const size_t line_end = answer.find('\n');
      if (line_end != std::string::npos) return answer.substr(0, line_end);
      if (answer.size() > kLongestAnswer) return answer;
    }
    if ((fd.revents & POLLOUT) != 0) {
      if (absl::Status status = SendSome(socket, noise, bytes, head, sent); !status.ok()) return status;
    }
  }
}

}  // namespace

std::string BurstLine(const std::string& secret, const std::string& nonce) {
  const std::string said = absl::StrCat(std::string(kBurstWord), nonce);
  return absl::StrCat(said, " ", absl::BytesToHexString(HmacSha256(secret, said)));
}

absl::StatusOr<double> ParseTook(std::string_view line) {
  if (line == kBusyWord) return absl::UnavailableError("the node took another burst at that time");
  int64_t bytes = 0, nanoseconds = 0;
  const std::string text(line);
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  if (!absl::StartsWith(text, std::string(kTookWord)) || words.size() != 3 || !absl::SimpleAtoi(words[1], &bytes) ||
      !absl::SimpleAtoi(words[2], &nanoseconds)) {
    return absl::UnavailableError(absl::StrCat("the node answered a burst with ", Quoted(text)));
  }
  if (bytes <= 0 || nanoseconds <= 0) return absl::UnavailableError("too little of the burst arrived to say how fast");
  return static_cast<double>(bytes) / (static_cast<double>(nanoseconds) * 1e-9);
}

absl::StatusOr<double> SendBurst(int socket, const std::string& secret, const Clock& clock, absl::Duration patience,
                                 const absl::Notification& cancelled) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string answer, Exchange(socket, secret, kBurstBytes, clock, patience, cancelled));
  return ParseTook(answer);
}

absl::Status TryLargePackets(int socket, const std::string& secret, const Clock& clock, absl::Duration patience,
                             const absl::Notification& cancelled) {
  const absl::Status status = Exchange(socket, secret, kLargeBytes, clock, patience, cancelled).status();
  return absl::IsDeadlineExceeded(status) ? status : absl::OkStatus();
}

}  // namespace motley::worker
