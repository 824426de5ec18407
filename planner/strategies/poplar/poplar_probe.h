// What Poplar learns about a device before it plans (algorithm 1): the largest microbatch that memory holds, and the steps that
// were run on the way there.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace motley::planner {

struct PoplarProbe {
  int64_t largest = 0;           // mbs; 0 = not even one sample fits
  std::vector<int64_t> batches;  // that were run and fit, ascending
};

// Doubles from 1 until a batch does not fit or `most` is reached, then bisects between the last that fits and the first that does
// not. Deviations from what is printed: lines 19-29 set low or high to mid and loop while low <= high, which never ends; here the
// interval shrinks to two neighbours. Lines 2-7 (a first guess from the memory of one forward pass) save steps on a real device
// and are left out: here a probe is a sum. `fits` is monotone.
PoplarProbe ProbeLargestBatch(const std::function<bool(int64_t)>& fits, int64_t most);

}  // namespace motley::planner
