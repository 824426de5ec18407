#include "worker/daemon/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "worker/daemon/nvidia_cards.h"

namespace motley::worker {
namespace {

constexpr double kOfferedPart = 0.8;
constexpr int64_t kSteps = 16;  // of the total
constexpr int64_t kLeastStep = int64_t{256} << 20;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Of a file that holds one number; "max" and what no machine has is no limit. Empty: there is no such file.
std::optional<int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  uint64_t number = 0;
  if (word == "max") return kNoLimit;
  if (!absl::SimpleAtoi(word, &number)) return std::nullopt;
  return number > static_cast<uint64_t>(kNoLimit) ? kNoLimit : static_cast<int64_t>(number);
}

// The number behind a word at the beginning of a line; 0: no line has it.
int64_t NumberBehind(const std::string& path, std::string_view word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t number = 0;
    if (parts.size() >= 2 && parts[0] == word && absl::SimpleAtoi(parts[1], &number)) return number;
  }
  return 0;
}

struct GroupFiles {
  const char *limit, *usage, *cached;  // the last: the line of memory.stat with what goes when somebody needs the room
};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

void Limit(const std::string& folder, const GroupFiles& files, HostMemory* host) {
  const int64_t limit = NumberIn(absl::StrCat(folder, "/", files.limit)).value_or(kNoLimit);
  if (limit >= host->total_bytes) return;
  const int64_t used = NumberIn(absl::StrCat(folder, "/", files.usage)).value_or(0);
  const int64_t cached = NumberBehind(absl::StrCat(folder, "/memory.stat"), files.cached);
  host->total_bytes = limit;
  host->available_bytes = std::min(host->available_bytes, std::max<int64_t>(0, limit - std::max<int64_t>(0, used - cached)));
}

// A group is held to its own limit and to those of all above it. In a container the path may be the host's: then the mount has
// the group's own files at its top, and there alone.
void LimitUpwards(const std::string& mount, std::string path, const GroupFiles& files, HostMemory* host) {
  for (;;) {
    Limit(absl::StrCat(mount, path), files, host);
    if (path.empty()) return;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

HostMemory ReadHostMemory(const std::string& root) {
  constexpr int64_t kKibi = 1024;
  const std::string meminfo = root + "/proc/meminfo";
  HostMemory host{NumberBehind(meminfo, "MemTotal:") * kKibi, NumberBehind(meminfo, "MemAvailable:") * kKibi};
  if (host.total_bytes == 0) return {};
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/user.slice/a", "4:memory:/a"
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::string path = parts[2] == "/" ? "" : parts[2];
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) LimitUpwards(root + "/sys/fs/cgroup", path, kVersion2, &host);
    if (std::ranges::count(controllers, "memory") > 0) LimitUpwards(root + "/sys/fs/cgroup/memory", path, kVersion1, &host);
  }
  return host;
}

int64_t OfferedByDefault(const HostMemory& host) {
  const int64_t step = std::max(kLeastStep, host.total_bytes / kSteps / kLeastStep * kLeastStep);
  return static_cast<int64_t>(kOfferedPart * static_cast<double>(host.available_bytes)) / step * step;
}

absl::Status CheckHostMemory(int64_t bytes, const HostMemory& host) {
  if (host.total_bytes == 0 || bytes <= host.total_bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("worker.host_memory_bytes offers ", Gibibytes(bytes), " (", bytes,
                                                    "), and this machine, or its control group, has ",
                                                    Gibibytes(host.total_bytes), " (", host.total_bytes, "); offer less"));
}

}  // namespace motley::worker
