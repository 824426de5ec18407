#include "common/base/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace motley {

void InParallel(size_t count, const std::function<void(size_t)>& work, size_t threads) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  if (threads == 0) threads = std::max<size_t>(1, std::thread::hardware_concurrency());
  std::vector<std::jthread> others;  // joined at the end of the scope
  try {
    for (size_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(take);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run do the work.
  }
  take();
}

}  // namespace motley
