// The thread that owns all state, and those beside it for work that takes long. See docs/inside/threading.md.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_condition.h"
#include "coordinator/core/executor.h"
#include "coordinator/core/task_queue.h"

namespace motley::coordinator {

// A thread that runs posted functions, those of one kind in order, the kinds in turns. Posters are bounded by their number: a
// stream posts its next message after the last one was handled.
class TaskThread {
 public:
  TaskThread() = default;
  // Runs what was posted, then ends.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Once. What was posted before runs then. `tick` runs between tasks, whatever waits, and returns how long it may sleep; null:
  // no ticks.
  void Start(std::function<absl::Duration()> tick = nullptr);
  // Thread-safe. After Stop a task is dropped.
  void Post(std::function<void()> task, TaskKind kind = TaskKind::kOwn);
  // Thread-safe, idempotent: finishes the queue and joins.
  void Stop();

 private:
  void Run();
  // Runs tasks until none waits or a tick is due. False: stopped, and none waits.
  bool RunSome(absl::Duration sleep);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); }

  std::function<absl::Duration()> tick_;  // constant after Start
  SteadyCondition changed_;
  absl::Mutex mutex_;
  TaskQueue tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// A thread as those who post tasks of one kind see it. The thread must outlive it.
class TaskPoster {
 public:
  TaskPoster(TaskThread& thread, TaskKind kind) : thread_(&thread), kind_(kind) {}
  // Thread-safe.
  void Post(std::function<void()> task) const { thread_->Post(std::move(task), kind_); }

 private:
  TaskThread* thread_;
  TaskKind kind_;
};

// Runs work on two threads of its own, or on one for itself, and the continuations on the loop. Nobody waits for what still works
// when it stops: that ends by itself, without its continuation. What the loop still asks for after that is dropped. `loop` must
// outlive it.
class BackgroundExecutor : public Executor {
 public:
  explicit BackgroundExecutor(TaskThread& loop)
      : apart_(std::make_shared<Apart>(&loop)), worker_(std::make_shared<TaskThread>()), aside_(std::make_shared<TaskThread>()) {
    worker_->Start();
    aside_->Start();
  }
  ~BackgroundExecutor() override { Stop(); }
  void Run(std::function<void()> work, std::function<void()> done) override;
  void RunAside(std::function<void()> work, std::function<void()> done) override;
  void RunApart(std::function<void()> work, std::function<void()> done) override;
  // Thread-safe, idempotent.
  void Stop();

 private:
  // Outlives the executor in threads that nobody waits for.
  struct Apart {
    explicit Apart(TaskThread* to) : loop(to) {}
    absl::Mutex mutex;
    TaskThread* loop ABSL_GUARDED_BY(mutex);  // null: stopped
  };
  // The work, then the continuation where the loop still is.
  std::function<void()> Task(std::function<void()> work, std::function<void()> done) const;

  const std::shared_ptr<Apart> apart_;
  // The same until the end: the loop may post to them while another thread stops this.
  const std::shared_ptr<TaskThread> worker_, aside_;
};

}  // namespace motley::coordinator
