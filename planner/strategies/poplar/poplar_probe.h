// What Poplar learns about a device before it plans (algorithm 1): the largest microbatch that memory holds, and the steps that
// were run on the way there.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace motley::planner {

// Which batches are run, one after the other, where the answer to each comes later. Doubles from 1 until a batch does not fit or
// `most` is reached, then bisects between the last that fits and the first that does not. Deviations from what is printed: lines
// 19-29 set low or high to mid and loop while low <= high, which never ends; here the interval shrinks to two neighbours. Lines
// 2-7 (a first guess from the memory of one forward pass) are left out: gradients and moments, which fill much of a device, are
// not there yet. That larger batches do not fit where one does not is taken for granted.
class BatchSearch {
 public:
  explicit BatchSearch(int64_t most) : most_(most) {}
  // The batch to run now; 0: the search is over.
  int64_t Next() const;
  // How that went.
  void Take(bool fits);
  int64_t largest() const { return low_; }  // that ran; 0: none
  // More batches than these are not run.
  int MostLeft() const;

 private:
  int64_t most_;
  int64_t low_ = 0, high_ = 0;  // low fits (0 always does), high does not; 0 = none known
};

struct PoplarProbe {
  int64_t largest = 0;           // mbs; 0 = not even one sample fits
  std::vector<int64_t> batches;  // that were run and fit, ascending
};

// Where a probe is a sum.
PoplarProbe ProbeLargestBatch(const std::function<bool(int64_t)>& fits, int64_t most);

}  // namespace motley::planner
