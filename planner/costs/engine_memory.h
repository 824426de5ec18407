// Bytes of a rank in closed form, for searches: with the state that the engine keeps, on the device or in host memory. It follows
// the buffers that programs declare and the order in which a rank computes, so it agrees with what the engine counts
// (docs/inside/simulator.md, "Memory"). memory_model.h, which asks it, has the formulas of published systems.
// Pure, thread-safe, no allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "planner/costs/costs.h"
#include "planner/costs/memory_model.h"

namespace motley::planner {

// The microbatches of a rank: those of a list, or `count` equal ones of `size` and one of `last` (0 = none).
class MicrobatchSizes {
 public:
  explicit MicrobatchSizes(const std::vector<int64_t>& list) : list_(&list), count_(static_cast<int64_t>(list.size())) {}
  MicrobatchSizes(int64_t count, int64_t size, int64_t last) : count_(count + (last > 0 ? 1 : 0)), size_(size), last_(last) {}
  int64_t count() const { return count_; }
  int64_t operator[](int64_t i) const {
    if (list_ != nullptr) return (*list_)[static_cast<size_t>(i)];
    return last_ > 0 && i + 1 == count_ ? last_ : size_;
  }
  int64_t Largest() const {
    return list_ == nullptr ? std::max(size_, last_) : list_->empty() ? 0 : *std::max_element(list_->begin(), list_->end());
  }
  // Of the first `n`.
  int64_t Sum(int64_t n) const {
    if (list_ != nullptr) return std::accumulate(list_->begin(), list_->begin() + n, int64_t{0});
    return n * size_ + (last_ > 0 && n == count_ ? last_ - size_ : 0);
  }
  // None is larger than the first.
  bool AreKnownToFall() const { return list_ == nullptr && last_ <= size_; }

 private:
  const std::vector<int64_t>* list_ = nullptr;
  int64_t count_ = 0, size_ = 0, last_ = 0;
};

// Whether state is kept the engine's way.
inline bool IsEngines(const Costs& costs) { return costs.workload().state == StateKeeping::kEngine; }

// Tokens and targets of all of the rank's samples in a step: they lie there from its begin, where the embedding or the head is.
int64_t TokenBytesOf(const Costs& costs, const RankDuty& duty, const MicrobatchSizes& microbatches);

MemoryByPurpose EngineMemoryOf(const Costs& costs, const RankDuty& duty, const MicrobatchSizes& microbatches);

}  // namespace motley::planner
