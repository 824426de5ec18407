// Keeps the step records of one epoch beside its job's checkpoints, in the forms that the job asks for. Rank 0 has one.
//
// Nothing here may hold or end the training: writing is done by a thread of its own, what cannot be written now is tried again,
// and what does not fit in memory meanwhile is dropped, the oldest first, and said. Every epoch has files of its own, so that a
// rank that lives on after its epoch spoils none of a newer one; before they are made it asks whether it is the newest.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/steady_condition.h"
#include "common/session/assignment.h"
#include "worker/records/append_file.h"
#include "worker/records/step_format.h"

namespace motley::worker {

class StepRecorder {
 public:
  struct Options {
    // Both are called on the recorder's thread.
    std::function<absl::Status(const std::string& purpose)> confirm;  // FAILED_PRECONDITION: a newer epoch exists
    std::function<void(const std::string& line)> log;
    absl::Duration pause = absl::Seconds(5);  // before what failed is tried again
    size_t most_waiting = 10'000;             // records, of each form
  };

  // Null where the assignment asks for no records, or is not rank 0's. `clock` must outlive the recorder.
  static std::unique_ptr<StepRecorder> CreateIfAsked(const RankAssignment& assignment, const Clock& clock, Options options);
  // Tries once more to write what waits; says what is lost.
  ~StepRecorder();

  // Never waits. `stats` as rank 0 knows it: step, loss, norm, learning rate and measured seconds.
  void Add(StepStats stats);

 private:
  // One form of the records.
  struct Sink {
    StepFormat format;
    std::optional<AppendFile> file;
    std::deque<StepRecord> waiting;
    int64_t dropped = 0;
    bool in_trouble = false;
  };

  StepRecorder(const RankAssignment& assignment, const Clock& clock, Options options);
  void Loop();
  // Takes what was added and tries to write it; whether nothing waits any more.
  bool WriteWhatWaits(std::deque<StepRecord> added);
  absl::Status Open(Sink& sink);
  absl::Status Write(Sink& sink);
  void Complain(Sink& sink, const absl::Status& status);

  const Clock& clock_;
  const Options options_;
  const std::string folder_;
  const Epoch epoch_;
  const int64_t tokens_per_step_;
  const double predicted_step_seconds_;
  std::vector<Sink> sinks_;  // the thread's
  bool superseded_ = false;  // the thread's: a newer epoch exists, nothing is to be written any more

  SteadyCondition changed_;
  absl::Mutex mutex_;
  std::deque<StepRecord> added_ ABSL_GUARDED_BY(mutex_);
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;  // of those that were added
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace motley::worker
