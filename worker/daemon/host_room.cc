#include "worker/daemon/host_room.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"

namespace motley::worker {
namespace {

constexpr size_t kMostProcesses = 4;
constexpr int64_t kWorthNaming = 64 << 20;

// Of /proc/PID/status: who it is, and what of it lies in memory.
CardProcess ReadProcess(int64_t pid, const std::filesystem::path& status) {
  CardProcess process{pid, "", 0};
  std::ifstream file(status);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
    if (parts.size() < 2) continue;
    if (parts[0] == "Name") process.name = CleanLine(parts[1]);
    int64_t kibi = 0;
    if (parts[0] == "VmRSS" && absl::SimpleAtoi(parts[1], &kibi)) process.bytes = kibi << 10;
  }
  return process;
}

}  // namespace

std::vector<CardProcess> LargestProcesses(const std::string& root) {
  std::vector<CardProcess> processes;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root + "/proc", error), end; !error && entry != end; entry.increment(error)) {
    int64_t pid = 0;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &pid)) continue;
    const CardProcess process = ReadProcess(pid, entry->path() / "status");
    if (process.bytes >= kWorthNaming) processes.push_back(process);
  }
  std::sort(processes.begin(), processes.end(),
            [](const CardProcess& a, const CardProcess& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.pid < b.pid; });
  processes.resize(std::min(processes.size(), kMostProcesses));
  return processes;
}

int64_t PlannedHostBytes(const std::vector<RankAssignment>& ranks) {
  int64_t bytes = 0;
  for (const RankAssignment& rank : ranks) bytes += rank.planned_host_bytes;
  return bytes;
}

absl::Status CheckHostRoom(const std::vector<RankAssignment>& ranks, const HostMemory& host,
                           const std::vector<CardProcess>& holders) {
  const int64_t planned = PlannedHostBytes(ranks);
  if (host.total_bytes == 0 || planned <= host.available_bytes) return absl::OkStatus();
  std::vector<std::string> keep;
  std::string node;
  for (const RankAssignment& rank : ranks) {
    if (rank.planned_host_bytes == 0) continue;
    node = NodeOf(rank.device.id).value();
    keep.push_back(absl::StrCat(rank.rank, " (", Gibibytes(rank.planned_host_bytes), ")"));
  }
  const std::string held = Holders(holders);
  return absl::ResourceExhaustedError(
      absl::StrCat("the host memory of ", node, " has ", Gibibytes(host.available_bytes), " available, and ",
                   keep.size() == 1 ? "rank " : "ranks ", absl::StrJoin(keep, ", "), " would keep ", Gibibytes(planned),
                   " there as planned", held.empty() ? "" : absl::StrCat("; most is held by ", held)));
}

int64_t StillOffered(int64_t offered_bytes, const HostMemory& host) {
  constexpr double kPart = 0.8;  // as a worker offers by itself
  return std::min(offered_bytes, static_cast<int64_t>(kPart * static_cast<double>(host.available_bytes)));
}

}  // namespace motley::worker
