// What happens, kept and handed on: durable events and job states go through the store first, then into the rings that
// WatchJob and TailLogs read. Texts come from workers, files and users: what is kept of them is one line of valid UTF-8 without
// control characters. Used on the loop only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "coordinator/core/config.h"
#include "coordinator/core/histories.h"
#include "coordinator/core/metrics.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job.h"
#include "coordinator/state/ring.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {

using Update = std::variant<std::shared_ptr<const JobStatus>, StepStats, EventRecord>;

// What a reader waits for: the updates, the log lines or the events of a job; of an empty one, the events of all, and the
// examination of the cluster (members/examiner) and the probe of a node's memory (epoch/memory_probe), of which nothing is kept
// here.
enum class NewsKind { kUpdates, kLogs, kEvents, kExamination };
using Topic = std::pair<NewsKind, JobId>;

// Texts that are kept are cut to this.
inline constexpr size_t kMaxTextBytes = 8 << 10;
// A text as it is kept: one clean line (common/base/clean_text.h) of at most `max_bytes`.
std::string KeptText(std::string_view text, size_t max_bytes);

class Journal {
 public:
  // `post` runs a function later on the loop.
  Journal(const Config& config, Clock& clock, Store& store, Metrics& metrics, std::function<void(std::function<void()>)> post);

  // Writes the batch; when it is on disk its jobs and events are published and logged. Times of events are filled in, texts cut.
  absl::Status Commit(Batch& batch);
  // Published, not stored: a job whose reason changed, a step.
  void Publish(const JobStatus& job);
  void PublishStep(const JobId& job, const StepStats& step);
  void AddLog(const JobId& job, std::string source, std::string text, int64_t unix_ms);

  const Ring<Update>& Updates(const JobId& job) { return RingsOf(job).updates; }
  // The curves of jobs, which go with their batches.
  Histories& histories() { return histories_; }

  const Ring<LogRecord>& Logs(const JobId& job) { return RingsOf(job).logs; }
  // Called once, on the loop, after the next thing of this topic was published. The ticket is for StopWaiting.
  int64_t WaitForNews(const Topic& topic, std::function<void()> wake);
  // A reader that goes before news came. After the news this does nothing, and `wake` may still be called.
  void StopWaiting(const Topic& topic, int64_t ticket);
  // Something of the job that is not kept here.
  void WakeReaders(const JobId& job) { Wake({NewsKind::kUpdates, job}); }
  void WakeExaminers() { Wake({NewsKind::kExamination, JobId()}); }
  // Finished jobs beyond the newest few lose their rings.
  void Forget(const JobId& job);
  int64_t UnixMs() const;

 private:
  struct Rings {
    Ring<Update> updates;
    Ring<LogRecord> logs;
  };
  Rings& RingsOf(const JobId& job);
  void Add(const JobId& job, Update update, size_t bytes);
  void Wake(const Topic& topic);

  const Config& config_;
  Clock& clock_;
  Store& store_;
  Metrics& metrics_;
  const std::function<void(std::function<void()>)> post_;
  const int64_t base_;  // cursors of this process lie above those of the one before
  std::map<JobId, Rings> rings_;
  Histories histories_;
  std::map<Topic, std::map<int64_t, std::function<void()>>> waiters_;  // by ticket
  int64_t tickets_ = 0;
  std::vector<std::function<void()>> ready_;  // their news came; they are called in the loop's next turn
};

}  // namespace motley::coordinator
