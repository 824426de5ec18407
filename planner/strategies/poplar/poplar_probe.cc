#include "planner/strategies/poplar/poplar_probe.h"

#include <algorithm>

namespace motley::planner {

PoplarProbe ProbeLargestBatch(const std::function<bool(int64_t)>& fits, int64_t most) {
  PoplarProbe probe;
  int64_t low = 0, high = 0;  // low fits (0 always does), high does not; 0 = none known
  for (int64_t batch = 1; high == 0 && low < most;) {
    if (fits(batch)) {
      low = batch;
      probe.batches.push_back(batch);
      batch = std::min(2 * batch, most);
    } else {
      high = batch;
    }
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (fits(middle)) {
      low = middle;
      probe.batches.push_back(middle);
    } else {
      high = middle;
    }
  }
  probe.largest = low;
  return probe;
}

}  // namespace motley::planner
