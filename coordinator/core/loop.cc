#include "coordinator/core/loop.h"

#include <functional>
#include <utility>
#include <vector>

namespace motley::coordinator {
namespace {

// A crowd's tasks never end: what happens by the clock comes between them.
constexpr size_t kTasksOfATick = 64;

}  // namespace

void TaskThread::Start(std::function<absl::Duration()> tick) {
  tick_ = std::move(tick);
  thread_ = std::thread([this] { Run(); });
}

TaskThread::~TaskThread() { Stop(); }

void TaskThread::Post(std::function<void()> task, TaskKind kind) {
  absl::MutexLock lock(&mutex_);
  if (!stopping_) tasks_.Push(kind, std::move(task));
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
  while (RunSome(tick_ ? tick_() : absl::InfiniteDuration())) {
  }
}

bool TaskThread::RunSome(absl::Duration sleep) {
  std::vector<std::function<void()>> tasks;
  tasks.reserve(kTasksOfATick);
  {
    absl::MutexLock lock(&mutex_);
    changed_.WaitFor(mutex_, sleep, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return HasWork(); });
    if (stopping_ && tasks_.empty()) return false;
    // In one go: taken one by one, they and those who post would wait for each other.
    while (tasks.size() < kTasksOfATick && !tasks_.empty()) tasks.push_back(tasks_.Pop());
  }
  for (std::function<void()>& task : tasks) task();
  return true;
}

void BackgroundExecutor::Run(std::function<void()> work, std::function<void()> done) {
  worker_->Post(Task(std::move(work), std::move(done)));
}

void BackgroundExecutor::RunAside(std::function<void()> work, std::function<void()> done) {
  aside_->Post(Task(std::move(work), std::move(done)));
}

void BackgroundExecutor::RunApart(std::function<void()> work, std::function<void()> done) {
  std::thread(Task(std::move(work), std::move(done))).detach();
}

std::function<void()> BackgroundExecutor::Task(std::function<void()> work, std::function<void()> done) const {
  return [apart = apart_, work = std::move(work), done = std::move(done)] {
    {
      absl::MutexLock lock(&apart->mutex);
      if (apart->loop == nullptr) return;
    }
    work();
    absl::MutexLock lock(&apart->mutex);
    if (apart->loop != nullptr) apart->loop->Post(done);
  };
}

void BackgroundExecutor::Stop() {
  {
    absl::MutexLock lock(&apart_->mutex);
    if (apart_->loop == nullptr) return;
    apart_->loop = nullptr;
  }
  for (const std::shared_ptr<TaskThread>& thread : {worker_, aside_}) {
    std::thread([ends = thread] { ends->Stop(); }).detach();
  }
}

}  // namespace motley::coordinator
