// The ways (microbatch size, recomputation) in which one kind of device can process samples: how many it reaches within bounds on
// the two passes and within its memory, and how little memory that takes.
//
// Times and bytes never fall as the batch grows, so a way reaches every batch up to its largest. Columns of ways are made for
// those batches alone that a bound comes near, and kept; for a microbatch size the largest batch within a bound is a division and
// a search among the smaller last microbatches. Not thread-safe: answers are cached.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "planner/split/split_problem.h"

namespace motley::planner {

struct Option {
  double forward = 0, backward = 0;  // seconds
  int64_t bytes = 0;
  int64_t microbatch = 0;
  bool recompute = false;
};

class OptionTable {
 public:
  // `kind` must outlive this. No batch exceeds `batch`.
  OptionTable(const SplitKind& kind, int64_t batch);

  int count() const { return kind_->count; }
  int64_t capacity() const { return kind_->capacity_bytes; }

  // Sets the bounds of what follows, returns the largest batch within them and within the memory; 0 = no sample.
  int64_t Bound(double forward_bound, double backward_bound);
  int64_t reach() const { return reach_; }
  // Least bytes beside `batch` samples within the bounds, 0 <= batch <= reach().
  int64_t LeastBytes(int64_t batch) const;
  // The same for every batch from 0 to reach().
  void Staircase(std::vector<int64_t>* bytes);

  // Of the times that some batch takes: the largest up to (below, if `strictly`) a bound, 0 if none; the least above it, infinity
  // if none.
  enum class Pass { kForward, kBackward };
  double LargestTime(Pass pass, double bound, bool strictly) const;
  double NextTime(Pass pass, double bound) const;

  // Backward seconds for one forward second: the least and the most over sizes and policies.
  std::pair<double, double> PassRatios() const;

  // Ways to process `batch` samples within the memory that no other beats in forward time, backward time and bytes together;
  // least memory first. Batch 0 has one way that costs nothing.
  const std::vector<Option>& Ways(int64_t batch);

 private:
  // One policy's backward times.
  struct Policy {
    bool recompute = false;
    const std::vector<double>* backward = nullptr;
    std::vector<int64_t> room;  // by size: largest batch that the memory holds
  };
  // Forward and backward times of a batch that no other way within the memory beats in both.
  struct Column {
    bool made = false;
    absl::InlinedVector<std::pair<double, double>, 2> front;  // mostly one
  };

  int64_t RoomFor(bool recompute, int64_t m, int64_t most) const;
  double TimeOf(const std::vector<double>& times, size_t size, int64_t batch) const;
  // Largest batch in [0, limit] that takes at most (less than, if `strictly`) `bound`.
  int64_t LargestWithin(const std::vector<double>& times, size_t size, double bound, bool strictly, int64_t limit) const;
  // Sizes that differ for this batch: one larger than the batch is the batch itself.
  size_t SizesFor(int64_t batch) const;
  bool IsWithin(int64_t batch);
  const Column& ColumnOf(int64_t batch);
  template <typename Function>
  void ForTimes(Pass pass, Function function) const;

  const SplitKind* kind_;
  int64_t limit_ = 0;             // largest batch that the memory holds
  std::vector<int64_t> sizes_;    // ascending
  bool every_size_ = false;       // sizes_ are 1..M
  bool small_is_frugal_ = false;  // for equal batches a smaller microbatch never needs more memory
  std::vector<Policy> policies_;
  double forward_bound_ = 0, backward_bound_ = 0;
  int64_t reach_ = 0;
  std::vector<Column> columns_;
  std::map<int64_t, std::vector<Option>> ways_;
};

}  // namespace motley::planner
