#include "planner/lowering/ring_order.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace motley::planner {

std::vector<int32_t> RingOrder(const std::vector<RingTask>& tasks, const std::vector<std::vector<int32_t>>& groups) {
  std::map<int32_t, std::vector<int32_t>> left;  // by group its tasks, the first of them last
  for (size_t i = tasks.size(); i-- > 0;) left[tasks[i].group].push_back(static_cast<int32_t>(i));
  std::map<int32_t, int64_t> free;  // by rank: since when
  const auto begin_of = [&](int32_t group) {
    int64_t begin = 0;
    for (const int32_t rank : groups[static_cast<size_t>(group)]) begin = std::max(begin, free[rank]);
    return begin;
  };
  std::vector<int32_t> order;
  while (order.size() < tasks.size()) {
    std::pair<int64_t, int32_t> first{INT64_MAX, 0};  // begin and task
    for (const auto& [group, its_tasks] : left) {
      if (!its_tasks.empty()) first = std::min(first, {begin_of(group), its_tasks.back()});
    }
    const RingTask& task = tasks[static_cast<size_t>(first.second)];
    for (const int32_t rank : groups[static_cast<size_t>(task.group)]) free[rank] = first.first + task.elements;
    left[task.group].pop_back();
    order.push_back(first.second);
  }
  return order;
}

}  // namespace motley::planner
