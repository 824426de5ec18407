#include "common/base/in_parallel.h"

#include <cstddef>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace motley {
namespace {

TEST(InParallelTest, EveryPieceOnceWhateverTheCount) {
  for (const size_t count : {0u, 1u, 2u, 3u, 100u}) {
    std::vector<int> calls(count, 0);
    InParallel(count, [&calls](size_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(count, 1)) << count;
  }
}

TEST(InParallelTest, NoMoreThreadsThanAskedFor) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  InParallel(
      200,
      [&](size_t) {
        const std::lock_guard<std::mutex> lock(mutex);
        threads.insert(std::this_thread::get_id());
      },
      1);
  EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(InParallelTest, PiecesMayHavePieces) {
  std::vector<std::vector<int>> made(8);
  InParallel(made.size(), [&made](size_t i) {
    made[i].resize(50);
    InParallel(50, [&made, i](size_t j) { made[i][j] = static_cast<int>(i * j); });
  });
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(std::accumulate(made[i].begin(), made[i].end(), 0), static_cast<int>(i * 49 * 50 / 2)) << i;
  }
}

}  // namespace
}  // namespace motley
