#include "worker/daemon/rank_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/wire/rank.h"

namespace motley::worker {
namespace {

constexpr size_t kMaxPendingBytes = 64 << 20;
constexpr size_t kMaxLineBytes = 4096;

}  // namespace

RankProcess::RankProcess(SpawnedRank spawned)
    : pid_(spawned.pid), socket_(std::move(spawned.socket)), output_(std::move(spawned.output)) {}

absl::StatusOr<std::unique_ptr<RankProcess>> RankProcess::Start(const std::string& program, int link_clock_fd) {
  MOTLEY_ASSIGN_OR_RETURN(SpawnedRank spawned, SpawnRank(program, {"--fd", "3", "--link-clock-fd", "4"}, link_clock_fd));
  return std::unique_ptr<RankProcess>(new RankProcess(std::move(spawned)));
}

RankProcess::~RankProcess() {
  if (reaped_) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::Status RankProcess::Send(const RankCommand& command) {
  if (!socket_.valid()) return absl::UnavailableError("the rank's socket is closed");
  pending_ += EncodeFrame(wire::ToProto(command).SerializeAsString());
  if (pending_.size() > kMaxPendingBytes) return absl::ResourceExhaustedError("the rank takes no messages");
  return Flush();
}

absl::Status RankProcess::Flush() {
  while (!pending_.empty() && socket_.valid()) {
    const ssize_t n = send(socket_.get(), pending_.data(), pending_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return absl::OkStatus();
    if (n < 0) {
      pending_.clear();  // its death is reported by TryReap
      return absl::UnavailableError(absl::StrCat("cannot write to the rank: ", strerror(errno)));
    }
    pending_.erase(0, static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RankMessage>> RankProcess::Receive() {
  std::vector<RankMessage> messages;
  char buffer[1 << 16];
  while (socket_.valid()) {
    const ssize_t n = recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      socket_.Reset();
      break;
    }
    decoder_.Append(std::string_view(buffer, static_cast<size_t>(n)));
  }
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(std::optional<std::string> frame, decoder_.Next());
    if (!frame) return messages;
    v1::FromRank proto;
    if (!proto.ParseFromString(*frame)) return absl::DataLossError("the rank sent bytes that are not a message");
    if (std::optional<RankMessage> message = wire::FromProto(proto)) messages.push_back(*std::move(message));
  }
}

std::vector<std::string> RankProcess::ReadLines() {
  std::vector<std::string> lines;
  char buffer[1 << 14];
  while (output_.valid()) {
    const ssize_t n = read(output_.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      output_.Reset();
      if (!partial_.empty()) lines.push_back(std::exchange(partial_, ""));
      break;
    }
    for (const char c : std::string_view(buffer, static_cast<size_t>(n))) {
      if (c != '\n') partial_ += c;
      if (c == '\n' || partial_.size() >= kMaxLineBytes) lines.push_back(std::exchange(partial_, ""));
    }
  }
  if (!lines.empty()) last_line_ = lines.back();
  return lines;
}

void RankProcess::Kill() {
  if (!reaped_) kill(pid_, SIGKILL);
}

std::optional<std::string> RankProcess::TryReap() {
  if (reaped_) return std::nullopt;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  reaped_ = true;
  if (WIFSIGNALED(status)) return absl::StrCat("was killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return absl::StrCat("exited with status ", WEXITSTATUS(status));
}

}  // namespace motley::worker
