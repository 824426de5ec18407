// A supervisor of two devices whose ranks are this program, which does what the job's name says; and what it reports.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tests/common/base/patience.h"
#include "worker/daemon/supervisor.h"

namespace motley::worker {

// Process ids of this test's living children.
inline std::vector<pid_t> Children() {
  std::ifstream in("/proc/self/task/" + std::to_string(getpid()) + "/children");
  std::vector<pid_t> pids;
  // The ranks belong to the supervisor's thread.
  DIR* tasks = opendir("/proc/self/task");
  for (dirent* entry = readdir(tasks); entry != nullptr; entry = readdir(tasks)) {
    std::ifstream children(std::string("/proc/self/task/") + entry->d_name + "/children");
    pids.insert(pids.end(), std::istream_iterator<pid_t>(children), {});
  }
  closedir(tasks);
  return pids;
}

inline OfferedDevice Offered(const char* id, const std::string& program) {
  OfferedDevice device;
  device.description.id = DeviceId(id);
  device.rank_binary = program;
  return device;
}

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() : metrics_(registry_, "n1", {}) { Restart({}); }

  void Restart(WatchConfig watch, absl::Duration stop_floor = absl::Minutes(1), const std::string& program = "/proc/self/exe") {
    supervisor_.reset();
    SupervisorConfig config;
    for (const char* id : {"n1/gpu0", "n1/gpu1"}) config.devices.push_back(Offered(id, program));
    config.devices[1].true_memory = 0.5;
    for (OfferedDevice& device : config.devices) {
      device.description.node_host_memory_bytes = 2000;
      device.true_host_memory = 0.5;
    }
    config.roots = FileRoots({"/data"});
    config.known_parts = known_parts_.get();
    config.host_root = host_root_;
    config.watch = watch;
    config.stop_floor = stop_floor;
    config.tick = absl::Milliseconds(10);
    config.on_restored = [this](std::string folder) {
      const absl::MutexLock lock(&mutex_);
      restored_.push_back(std::move(folder));
    };
    supervisor_ = std::make_unique<Supervisor>(config, clock_, outbox_, metrics_);
  }

  void Start(const std::vector<RankAssignment>& ranks) { supervisor_->Start({ranks}); }
  void Stop(int64_t epoch, bool save) { supervisor_->Stop({JobId("job"), Epoch(epoch), save, "a test says so"}); }
  std::optional<WorkerReport> Pop(absl::Duration timeout) {
    outbox_.Wait(timeout, /*for_reports=*/true);
    return outbox_.TryPop();
  }
  // The first report that satisfies the condition; an empty one after 20 s.
  WorkerReport WaitFor(const std::function<bool(const WorkerReport&)>& wanted) {
    const absl::Duration deadline = clock_.Now() + Patience(absl::Seconds(20));
    while (clock_.Now() < deadline) {
      if (auto report = Pop(absl::Milliseconds(100)); report && wanted(*report)) return *report;
    }
    ADD_FAILURE() << "the report did not come";
    return {};
  }
  template <typename Report>
  Report WaitForReport() {
    const WorkerReport report = WaitFor([](const WorkerReport& r) { return std::holds_alternative<Report>(r); });
    return std::holds_alternative<Report>(report) ? std::get<Report>(report) : Report();
  }
  RankReport WaitForEvent(RankEventKind kind, int rank = 0) {
    const WorkerReport report = WaitFor([&](const WorkerReport& r) {
      const auto* event = std::get_if<RankReport>(&r);
      return event != nullptr && event->kind == kind && event->rank == rank;
    });
    return std::holds_alternative<RankReport>(report) ? std::get<RankReport>(report) : RankReport();
  }
  // Another test may have left children that nobody waits for.
  std::vector<pid_t> Ranks() const {
    std::vector<pid_t> ranks = Children();
    std::erase_if(ranks, [this](pid_t pid) { return std::find(others_.begin(), others_.end(), pid) != others_.end(); });
    return ranks;
  }
  void WaitForNoRanks() {
    const absl::Duration deadline = clock_.Now() + Patience(absl::Seconds(20));
    while (!Ranks().empty() && clock_.Now() < deadline) Pop(absl::Milliseconds(20));
    EXPECT_TRUE(Ranks().empty());
  }

  std::vector<std::string> Restored() {
    const absl::MutexLock lock(&mutex_);
    return restored_;
  }

  const std::vector<pid_t> others_ = Children();
  absl::Mutex mutex_;
  std::vector<std::string> restored_ ABSL_GUARDED_BY(mutex_);

  SystemClock clock_;
  MetricsRegistry registry_;
  WorkerMetrics metrics_;
  Outbox outbox_;
  std::string host_root_;  // in the place of "/": what the host has
  const UniqueFd known_parts_ = *NewKnownParts();
  std::unique_ptr<Supervisor> supervisor_;
};

}  // namespace motley::worker
