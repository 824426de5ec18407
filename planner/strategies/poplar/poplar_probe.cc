#include "planner/strategies/poplar/poplar_probe.h"

#include <algorithm>

#include "planner/util/curve.h"

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

std::vector<double> SecondsBySpline(const PoplarProbe& probe, const std::function<double(int64_t)>& seconds) {
  if (probe.largest == 0) return {};
  std::vector<double> xs, ys;
  for (const int64_t batch : probe.batches) {
    xs.push_back(static_cast<double>(batch));
    ys.push_back(std::max(seconds(batch), ys.empty() ? 0 : ys.back()));
  }
  const Curve curve = Curve::Pchip(xs, ys);
  std::vector<double> table = {0};
  for (int64_t batch = 1; batch <= probe.largest; ++batch) table.push_back(curve.At(static_cast<double>(batch)));
  return table;
}

}  // namespace motley::planner
