#include "planner/util/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace motley::planner {

void InParallel(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  std::vector<std::jthread> others;  // joined at the end of the scope
  try {
    for (size_t t = 1; t < std::min(cores, count); ++t) others.emplace_back(take);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run do the work.
  }
  take();
}

}  // namespace motley::planner
