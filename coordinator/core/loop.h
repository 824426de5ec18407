// The thread that owns all state, and the one beside it for work that takes long. See docs/threading.md.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_condition.h"
#include "coordinator/core/executor.h"

namespace motley::coordinator {

// A thread that runs posted functions in order. Posters are bounded by their number: a stream posts its next message after
// the last one was handled.
class TaskThread {
 public:
  TaskThread() = default;
  // Runs what was posted, then ends.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Once. What was posted before runs then. `tick` runs between tasks and returns how long it may sleep; null: no ticks.
  void Start(std::function<absl::Duration()> tick = nullptr);
  // Thread-safe. After Stop a task is dropped.
  void Post(std::function<void()> task);
  // Thread-safe, idempotent: finishes the queue and joins.
  void Stop();

 private:
  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); }

  std::function<absl::Duration()> tick_;  // constant after Start
  SteadyCondition changed_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Runs work on two threads of its own and the continuations on the loop. `loop` must outlive it.
class BackgroundExecutor : public Executor {
 public:
  explicit BackgroundExecutor(TaskThread& loop) : loop_(loop) {
    worker_.Start();
    aside_.Start();
  }
  void Run(std::function<void()> work, std::function<void()> done) override;
  void RunAside(std::function<void()> work, std::function<void()> done) override;
  void Stop() {
    worker_.Stop();
    aside_.Stop();
  }

 private:
  void RunOn(TaskThread& thread, std::function<void()> work, std::function<void()> done);

  TaskThread& loop_;
  TaskThread worker_, aside_;
};

}  // namespace motley::coordinator
