#include "worker/daemon/burst_taker.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/hmac.h"
#include "worker/daemon/burst.h"

namespace motley::worker {
namespace {

constexpr size_t kMostPeers = 64;
constexpr size_t kMostBursts = 1000;  // of one examination
constexpr size_t kLongestLine = 128;
constexpr size_t kReadBytes = 64 << 10;
constexpr int kReadsATurn = 8;  // 0.5 MiB: greetings wait for less than a millisecond

void Say(const UniqueFd& socket, const std::string& line) {
  (void)send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

void BurstTaker::Allow(std::string secret, absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  if (secret != secret_) said_.clear();
  secret_ = std::move(secret);
  allowed_until_ = clock_.Now() + duration;
}

bool BurstTaker::IsAllowed(std::string_view line) {
  absl::MutexLock lock(&mutex_);
  if (secret_.empty() || clock_.Now() >= allowed_until_ || line.size() < kBurstWord.size() + kBurstNonceDigits) return false;
  const std::string nonce(line.substr(kBurstWord.size(), kBurstNonceDigits));
  return EqualSecrets(line, BurstLine(secret_, nonce)) && said_.size() < kMostBursts && said_.insert(std::string(line)).second;
}

void BurstTaker::Add(UniqueFd socket) {
  {
    absl::MutexLock lock(&mutex_);
    if (secret_.empty() || clock_.Now() >= allowed_until_) return;
  }
  if (peers_.size() >= kMostPeers) {
    // Strangers that say nothing are the oldest: who has the secret shows it at once.
    const auto oldest = std::find_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.stage == Stage::kSecret; });
    if (oldest == peers_.end()) return;
    peers_.erase(oldest);
  }
  Peer& peer = peers_.emplace_back();
  peer.socket = std::move(socket);
  peer.end = clock_.Now() + kTakersPatience;
}

int BurstTaker::AppendTo(std::vector<pollfd>* fds) const {
  absl::Duration first = absl::InfiniteDuration();
  for (const Peer& peer : peers_) {
    fds->push_back({peer.socket.get(), POLLIN, 0});
    first = std::min(first, peer.end);
  }
  if (peers_.empty()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(std::max(first - clock_.Now(), absl::ZeroDuration()))) + 1;
}

void BurstTaker::Serve(const pollfd* fds) {
  for (auto peer = peers_.begin(); peer != peers_.end(); ++fds) {
    bool stays = fds->revents == 0 || ServeReady(*peer);
    if (stays && clock_.Now() >= peer->end) stays = OnLate(*peer);
    peer = stays ? std::next(peer) : peers_.erase(peer);
  }
}

bool BurstTaker::ServeReady(Peer& peer) { return peer.stage == Stage::kSecret ? OnSecret(peer) : OnBurst(peer); }

bool BurstTaker::OnSecret(Peer& peer) {
  char buffer[kLongestLine];
  const ssize_t n = recv(peer.socket.get(), buffer, sizeof(buffer) - peer.line.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n <= 0) return false;
  peer.line.append(buffer, static_cast<size_t>(n));
  const size_t end = peer.line.find('\n');
  if (end == std::string::npos) return peer.line.size() < kLongestLine;
  if (!IsAllowed(std::string_view(peer.line).substr(0, end))) return false;
  const bool busy = std::any_of(peers_.begin(), peers_.end(), [](const Peer& other) { return other.stage == Stage::kBurst; });
  if (busy) {
    Say(peer.socket, absl::StrCat(std::string(kBusyWord), "\n"));
    peer.stage = Stage::kOver;  // closing before the sender has read that would take it away
  } else {
    peer.stage = Stage::kBurst;
  }
  peer.end = clock_.Now() + kTakersPatience;
  return true;
}

bool BurstTaker::OnBurst(Peer& peer) {
  char buffer[kReadBytes];
  for (int i = 0; i < kReadsATurn; ++i) {
    const ssize_t n = recv(peer.socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return peer.stage == Stage::kBurst && peer.begun && Finish(peer);
    if (peer.stage == Stage::kOver) continue;
    if (!peer.begun) {
      // How long these were on their way is not known: the time begins behind them.
      peer.begun = clock_.Now();
      peer.end = *peer.begun + kBurstTime;
      continue;
    }
    peer.bytes += n;
    if (peer.bytes >= kBurstBytes) return Finish(peer);
  }
  return true;
}

bool BurstTaker::OnLate(Peer& peer) { return peer.stage == Stage::kBurst && peer.begun && Finish(peer); }

// What still comes is thrown away until the sender has read this and closes; closing here could take the answer away.
bool BurstTaker::Finish(Peer& peer) {
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(clock_.Now() - *peer.begun);
  Say(peer.socket, absl::StrCat(std::string(kTookWord), peer.bytes, " ", nanoseconds, "\n"));
  shutdown(peer.socket.get(), SHUT_WR);
  peer.stage = Stage::kOver;
  peer.end = clock_.Now() + kTakersPatience;
  return true;
}

}  // namespace motley::worker
