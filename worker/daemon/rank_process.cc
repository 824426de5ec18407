#include "worker/daemon/rank_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/rank.h"

namespace motley::worker {
namespace {

constexpr size_t kMaxPendingBytes = 64 << 20;
constexpr size_t kMaxTurnBytes = 1 << 20;  // of a rank that floods: the others get their turns
constexpr size_t kMaxLineBytes = 8 << 10;
constexpr size_t kMaxMessageBytes = 16 << 20;

struct KindLimit {
  v1::FromRank::MessageCase kind;
  const char* name;
  size_t bytes;
};
// Of messages as they come; what people read (logs, reasons) is cut to 8 KiB afterwards.
constexpr KindLimit kLimits[] = {{v1::FromRank::kEvent, "event", 256 << 10},
                                 {v1::FromRank::kStep, "step report", 4 << 10},
                                 {v1::FromRank::kKvSet, "rendezvous value", 64 << 10},
                                 {v1::FromRank::kKvGet, "rendezvous question", 4 << 10},
                                 {v1::FromRank::kPublishRequest, "question of a checkpoint", 8 << 10},
                                 {v1::FromRank::kCheckpointPublished, "checkpoint", 16 << 10},
                                 {v1::FromRank::kCheckpointFailed, "failed checkpoint", 256 << 10},
                                 {v1::FromRank::kProfileResult, "profile", kMaxMessageBytes},
                                 {v1::FromRank::kLog, "log line", 1 << 20},
                                 {v1::FromRank::kTraceResult, "timeline", kMaxMessageBytes},
                                 {v1::FromRank::kProgress, "progress", 4 << 10}};

absl::Status CheckSize(const v1::FromRank& message, size_t bytes) {
  for (const KindLimit& limit : kLimits) {
    if (limit.kind != message.message_case() || bytes <= limit.bytes) continue;
    return absl::DataLossError(
        absl::StrCat("the rank sent a ", limit.name, " of ", bytes, " bytes; at most ", limit.bytes, " are taken"));
  }
  return absl::OkStatus();
}

}  // namespace

RankProcess::RankProcess(SpawnedProcess spawned)
    : pid_(spawned.pid),
      socket_(std::move(spawned.socket)),
      output_(std::move(spawned.output)),
      decoder_(kMaxMessageBytes),
      lines_(kMaxLineBytes) {}

absl::StatusOr<std::unique_ptr<RankProcess>> RankProcess::Start(const std::string& program,
                                                                const std::vector<std::string>& arguments,
                                                                const std::vector<std::string>& variables,
                                                                const SharedMemory& memory) {
  std::vector<std::string> all = {"--fd", "3", "--link-clock-fd", "4"};
  if (memory.known_parts >= 0) all.insert(all.end(), {"--known-parts-fd", "5"});
  all.insert(all.end(), arguments.begin(), arguments.end());
  MOTLEY_ASSIGN_OR_RETURN(SpawnedProcess spawned, Spawn(program, all, variables, memory));
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
  for (size_t received = 0; socket_.valid() && received < kMaxTurnBytes;) {
    const ssize_t n = recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      socket_.Reset();
      break;
    }
    received += static_cast<size_t>(n);
    decoder_.Append(std::string_view(buffer, static_cast<size_t>(n)));
  }
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(std::optional<std::string> frame, decoder_.Next());
    if (!frame) return messages;
    v1::FromRank proto;
    if (!proto.ParseFromString(*frame)) return absl::DataLossError("the rank sent bytes that are not a message");
    MOTLEY_RETURN_IF_ERROR(CheckSize(proto, frame->size()));
    if (std::optional<RankMessage> message = wire::FromProto(proto)) messages.push_back(*std::move(message));
  }
}

std::vector<std::string> RankProcess::ReadLines() {
  std::vector<std::string> lines;
  char buffer[1 << 14];
  for (size_t taken = 0; output_.valid() && taken < kMaxTurnBytes;) {
    const ssize_t n = read(output_.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      output_.Reset();
      lines_.End(lines);
      break;
    }
    taken += static_cast<size_t>(n);
    lines_.Append(std::string_view(buffer, static_cast<size_t>(n)), lines);
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
