#include "planner/strategies/poplar/poplar_probe.h"

#include <algorithm>

namespace motley::planner {

int64_t BatchSearch::Next() const {
  if (high_ == 0) return low_ == most_ ? 0 : std::min(std::max<int64_t>(1, 2 * low_), most_);
  return high_ - low_ > 1 ? low_ + (high_ - low_) / 2 : 0;
}

void BatchSearch::Take(bool fits) { (fits ? low_ : high_) = Next(); }

int BatchSearch::MostLeft() const {
  BatchSearch rest = *this;
  int left = 0;
  // The longest way: all doublings, the last of which does not fit.
  for (int64_t next = rest.Next(); next > 0; next = rest.Next(), ++left) rest.Take(next < most_);
  return left;
}

PoplarProbe ProbeLargestBatch(const std::function<bool(int64_t)>& fits, int64_t most) {
  PoplarProbe probe;
  BatchSearch search(most);
  for (int64_t batch = search.Next(); batch > 0; batch = search.Next()) {
    const bool fit = fits(batch);
    if (fit) probe.batches.push_back(batch);
    search.Take(fit);
  }
  probe.largest = search.largest();
  return probe;
}

}  // namespace motley::planner
