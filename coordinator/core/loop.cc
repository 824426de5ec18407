#include "coordinator/core/loop.h"

#include <utility>

namespace motley::coordinator {

void TaskThread::Start(std::function<absl::Duration()> tick) {
  tick_ = std::move(tick);
  thread_ = std::thread([this] { Run(); });
}

TaskThread::~TaskThread() { Stop(); }

void TaskThread::Post(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (!stopping_) tasks_.push_back(std::move(task));
  changed_.NotifyAll();
}

void TaskThread::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void TaskThread::Run() {
  while (true) {
    const absl::Duration sleep = tick_ ? tick_() : absl::InfiniteDuration();
    std::deque<std::function<void()>> tasks;
    {
      absl::MutexLock lock(&mutex_);
      changed_.WaitFor(mutex_, sleep, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return HasWork(); });
      if (stopping_ && tasks_.empty()) return;
      tasks.swap(tasks_);
    }
    for (std::function<void()>& task : tasks) task();
  }
}

void BackgroundExecutor::Run(std::function<void()> work, std::function<void()> done) {
  RunOn(worker_, std::move(work), std::move(done));
}

void BackgroundExecutor::RunAside(std::function<void()> work, std::function<void()> done) {
  RunOn(aside_, std::move(work), std::move(done));
}

void BackgroundExecutor::RunOn(TaskThread& thread, std::function<void()> work, std::function<void()> done) {
  thread.Post([this, work = std::move(work), done = std::move(done)] {
    work();
    loop_.Post(done);
  });
}

}  // namespace motley::coordinator
