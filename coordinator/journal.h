// What happens, kept and handed on: durable events and job states go through the store first, then into the rings that
// WatchJob and TailLogs read. Texts come from workers, files and users: what is kept of them is one line of valid UTF-8 without
// control characters. Used on the loop only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "coordinator/config.h"
#include "coordinator/metrics.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job.h"
#include "coordinator/state/ring.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {

using Update = std::variant<std::shared_ptr<const JobRecord>, StepStats, EventRecord>;

class Journal {
 public:
  // `post` runs a function later on the loop.
  Journal(const Config& config, Clock& clock, Store& store, Metrics& metrics, std::function<void(std::function<void()>)> post);

  // Writes the batch; when it is on disk its jobs and events are published and logged. Times of events are filled in.
  absl::Status Commit(Batch& batch);
  // Published, not stored: a job whose reason changed, a step.
  void Publish(const JobRecord& job);
  void PublishStep(const JobId& job, const StepStats& step);
  void AddLog(const JobId& job, std::string source, std::string text, int64_t unix_ms);

  const Ring<Update>& Updates(const JobId& job) { return RingsOf(job).updates; }
  const Ring<LogRecord>& Logs(const JobId& job) { return RingsOf(job).logs; }
  // Called once, on the loop, after the next thing was published. Many waiters share one wake-up.
  void WaitForNews(std::function<void()> wake);
  // Finished jobs beyond the newest few lose their rings.
  void Forget(const JobId& job);
  int64_t UnixMs() const;

 private:
  struct Rings {
    Ring<Update> updates;
    Ring<LogRecord> logs;
  };
  Rings& RingsOf(const JobId& job);
  void Add(const JobId& job, Update update);
  void Wake();

  const Config& config_;
  Clock& clock_;
  Store& store_;
  Metrics& metrics_;
  const std::function<void(std::function<void()>)> post_;
  const int64_t base_;  // cursors of this process lie above those of the one before
  std::map<JobId, Rings> rings_;
  std::vector<std::function<void()>> waiters_;
  bool wake_posted_ = false;
};

}  // namespace motley::coordinator
