// What waits for the loop: tasks of three kinds that take turns, so that a crowd of one kind delays the others by no more than
// one task at a time. Within a kind they keep their order; between kinds there is none.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>

namespace motley::coordinator {

// Whose task it is.
enum class TaskKind {
  kOwn,      // the coordinator's: what its background work found, news for those who wait for them
  kPeople,   // calls and streams of people's server, the watchdog's question among them
  kWorkers,  // sessions and calls of workers' server: thousands may beat at once
};
inline constexpr size_t kNumTaskKinds = 3;

// Not thread-safe.
class TaskQueue {
 public:
  void Push(TaskKind kind, std::function<void()> task);
  bool empty() const;
  // The oldest task of the next kind in turn that has one; there must be one.
  std::function<void()> Pop();

 private:
  std::array<std::deque<std::function<void()>>, kNumTaskKinds> waiting_;
  size_t turn_ = 0;
};

}  // namespace motley::coordinator
