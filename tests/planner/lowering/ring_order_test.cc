// One order of collectives whose rings share ranks.
#include "planner/lowering/ring_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace motley::planner {
namespace {

// What the order takes where each rank runs its own tasks one after the other.
int64_t TimeOf(const std::vector<int32_t>& order, const std::vector<RingTask>& tasks,
               const std::vector<std::vector<int32_t>>& groups) {
  std::vector<int64_t> free(8, 0);
  for (const int32_t i : order) {
    int64_t begin = 0;
    for (const int32_t rank : groups[tasks[i].group]) begin = std::max(begin, free[rank]);
    for (const int32_t rank : groups[tasks[i].group]) free[rank] = begin + tasks[i].elements;
  }
  return *std::max_element(free.begin(), free.end());
}

TEST(RingOrderTest, RingsWithoutACommonRankKeepTheirOrder) {
  // Two stages of two pipelines, cut alike: every rank has its own tasks in their order.
  const std::vector<std::vector<int32_t>> groups = {{0, 2}, {1, 3}};
  EXPECT_EQ(RingOrder({{0, 5}, {0, 5}, {1, 5}, {1, 5}}, groups), (std::vector<int32_t>{0, 2, 1, 3}));
}

TEST(RingOrderTest, AChainOfRingsRunsSideBySide) {
  // Stages of layers 1-3 and 4-6 beside 1-4 and 5-6: 4's ring has a rank of each other.
  const std::vector<std::vector<int32_t>> groups = {{0, 2}, {1, 2}, {1, 3}};
  const std::vector<RingTask> layers = {{0, 1}, {0, 1}, {0, 1}, {1, 1}, {2, 1}, {2, 1}};
  const std::vector<int32_t> order = RingOrder(layers, groups);
  EXPECT_EQ(order, (std::vector<int32_t>{0, 4, 1, 5, 2, 3}));
  EXPECT_EQ(TimeOf({0, 1, 2, 3, 4, 5}, layers, groups), 6);
  EXPECT_EQ(TimeOf(order, layers, groups), 4);
}

TEST(RingOrderTest, EveryTaskOnceAndNeverSlowerThanOneBehindTheOther) {
  std::mt19937 random(3);
  for (int n = 0; n < 200; ++n) {
    std::vector<std::vector<int32_t>> groups(4);
    for (auto& group : groups) {
      for (int32_t rank = 0; rank < 8; ++rank) {
        if (random() % 3 == 0) group.push_back(rank);
      }
      if (group.empty()) group.push_back(0);
    }
    std::vector<RingTask> tasks(12);
    int64_t all = 0;
    for (RingTask& task : tasks) {
      task = {static_cast<int32_t>(random() % 4), static_cast<int64_t>(1 + random() % 9)};
      all += task.elements;
    }
    std::vector<int32_t> order = RingOrder(tasks, groups);
    EXPECT_LE(TimeOf(order, tasks, groups), all);
    std::sort(order.begin(), order.end());
    for (int32_t i = 0; i < 12; ++i) EXPECT_EQ(order[i], i);
  }
}

}  // namespace
}  // namespace motley::planner
