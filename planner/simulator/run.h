// What Run (step_graph.h) is made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

// INVALID_ARGUMENT names the task (or link) and what is wrong with it.
absl::Status CheckGraph(const StepGraph& graph, const Stragglers& stragglers);

// Lists of integers by index, in one piece of memory.
class IndexLists {
 public:
  // First Count every item's list, then Fill, then Add as often as was counted.
  explicit IndexLists(size_t lists) : starts_(lists + 1, 0) {}
  void Count(size_t list) { ++starts_[list + 1]; }
  void Fill() {
    for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
    next_.assign(starts_.begin(), starts_.end() - 1);
    items_.resize(static_cast<size_t>(starts_.back()));
  }
  void Add(size_t list, int32_t item) { items_[next_[list]++] = item; }
  std::span<const int32_t> operator[](size_t list) const {
    return {items_.data() + starts_[list], static_cast<size_t>(starts_[list + 1] - starts_[list])};
  }

 private:
  std::vector<int32_t> starts_, next_, items_;
};

// Actors that are slow, chosen by the seed.
std::vector<bool> ChooseStragglers(size_t actors, const Stragglers& stragglers);

// FAILED_PRECONDITION with every stuck lane. `lane_head`: position in the lane's tasks.
absl::Status DeadlockError(const StepGraph& graph, const IndexLists& lane_tasks, const std::vector<int32_t>& lane_head,
                           const std::vector<bool>& ended);

}  // namespace motley::planner
