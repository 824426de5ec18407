#include "worker/daemon/rank_nccl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {
namespace {

// It loads libtorch, which takes a second or two from a cold disk.
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr size_t kLongestAnswer = 32;

// What it says until its output ends, or more than an answer can have.
std::string ReadAll(int fd, absl::Time until) {
  std::string text;
  for (;;) {
    const absl::Duration left = until - absl::Now();
    pollfd ready = {fd, POLLIN, 0};
    if (left <= absl::ZeroDuration()) return text;
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    char buffer[256];
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return text;
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kLongestAnswer) return text;
  }
}

bool IsVersion(const std::string& text) {
  return !text.empty() && text.size() <= kLongestAnswer && absl::ascii_isdigit(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c) || c == '.'; });
}

}  // namespace

std::string NcclOf(const std::string& rank_binary) {
  const absl::StatusOr<SpawnedProcess> asked = Spawn(rank_binary, {"--nccl"}, {}, -1);
  if (!asked.ok()) return "";
  const std::string said(absl::StripAsciiWhitespace(ReadAll(asked->output.get(), absl::Now() + kPatience)));
  kill(-asked->pid, SIGKILL);  // of one that has closed its output there is nothing left to say
  int status = 0;
  while (waitpid(asked->pid, &status, 0) < 0 && errno == EINTR) {
  }
  return IsVersion(said) ? said : "";
}

}  // namespace motley::worker
