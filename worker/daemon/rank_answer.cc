#include "worker/daemon/rank_answer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {
namespace {

constexpr absl::Duration kRankPatience = absl::Seconds(30);  // from a cold disk it takes seconds to load
constexpr absl::Duration kRankTurn = absl::Milliseconds(20);
constexpr size_t kLongestRankAnswer = 64 << 10;  // with what NCCL itself prints where NCCL_DEBUG is set

bool Goes(absl::Time until, const std::stop_token& stop) { return absl::Now() < until && !stop.stop_requested(); }

// What it says until its output ends, or more than an answer can have.
std::string ReadAnswer(int fd, absl::Time until, const std::stop_token& stop) {
  std::string text;
  while (Goes(until, stop) && text.size() <= kLongestRankAnswer) {
    pollfd ready = {fd, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(kRankTurn))) <= 0) continue;
    char buffer[256];
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("was killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return WEXITSTATUS(status) == 0 ? "" : absl::StrCat("exited with status ", WEXITSTATUS(status));
}

std::string AwaitRankEnd(pid_t pid, absl::Time until, const std::stop_token& stop) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (!Goes(until, stop)) {
      kill(-pid, SIGKILL);
      kill(pid, SIGKILL);  // before it has made its group
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
      return "had not ended in time";
    }
    absl::SleepFor(kRankTurn);
  }
  return HowItEnded(status);
}

}  // namespace

absl::StatusOr<RankAnswer> AskRank(const std::string& rank_binary, const std::string& flag, absl::Duration to_end,
                                   const std::stop_token& stop) {
  MOTLEY_ASSIGN_OR_RETURN(const SpawnedProcess asked, Spawn(rank_binary, {flag}, {}, SharedMemory()));
  const absl::Time until = absl::Now() + kRankPatience;
  const std::string said(absl::StripAsciiWhitespace(ReadAnswer(asked.output.get(), until, stop)));
  return RankAnswer{CleanLine(said.substr(said.find_last_of('\n') + 1)),
                    AwaitRankEnd(asked.pid, std::min(until, absl::Now() + to_end), stop)};
}

}  // namespace motley::worker
