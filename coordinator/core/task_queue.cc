#include "coordinator/core/task_queue.h"

#include <algorithm>
#include <utility>

namespace motley::coordinator {

void TaskQueue::Push(TaskKind kind, std::function<void()> task) {
  waiting_[static_cast<size_t>(kind)].push_back(std::move(task));
}

bool TaskQueue::empty() const {
  return std::all_of(waiting_.begin(), waiting_.end(), [](const auto& tasks) { return tasks.empty(); });
}

std::function<void()> TaskQueue::Pop() {
  while (waiting_[turn_].empty()) turn_ = (turn_ + 1) % kNumTaskKinds;
  std::function<void()> task = std::move(waiting_[turn_].front());
  waiting_[turn_].pop_front();
  turn_ = (turn_ + 1) % kNumTaskKinds;
  return task;
}

}  // namespace motley::coordinator
