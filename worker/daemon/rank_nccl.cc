#include "worker/daemon/rank_nccl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/logging.h"
#include "common/device/machine_limits.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {
namespace {

// It loads libtorch, which takes a second or two from a cold disk.
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr size_t kLongestAnswer = 64 << 10;  // with what NCCL itself prints where NCCL_DEBUG is set

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

// "2.28.9" is 22809; 0: no version.
int VersionOf(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '.');
  int major = 0, minor = 0, patch = 0;
  const bool is_one = parts.size() == 3 && absl::SimpleAtoi(parts[0], &major) && absl::SimpleAtoi(parts[1], &minor) &&
                      absl::SimpleAtoi(parts[2], &patch) && major > 0 && major < 100 && minor >= 0 && minor < 100 && patch >= 0 &&
                      patch < 100;
  return is_one ? major * 10000 + minor * 100 + patch : 0;
}

}  // namespace

int NcclOf(const std::string& rank_binary) {
  const absl::StatusOr<SpawnedProcess> asked = Spawn(rank_binary, {"--nccl"}, {}, -1);
  if (!asked.ok()) return 0;
  const std::string said(absl::StripAsciiWhitespace(ReadAll(asked->output.get(), absl::Now() + kPatience)));
  kill(-asked->pid, SIGKILL);  // of one that has closed its output there is nothing left to say
  int status = 0;
  while (waitpid(asked->pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string last = said.substr(said.find_last_of('\n') + 1);
  const int version = VersionOf(last);
  if (version == 0) LogWarning(absl::StrCat("cards go without NCCL: ", rank_binary, " --nccl says: ", last));
  const MachineLimits limits = MachineLimitsHere();
  for (const std::string& small : {SharedMemoryTooSmall(limits), LockedMemoryTooSmall(limits)}) {
    if (version > 0 && !small.empty()) LogWarning(absl::StrCat("NCCL may fail in a job: ", small));
  }
  return version;
}

}  // namespace motley::worker
