#include "planner/published/poplar_spline.h"

#include <algorithm>

#include "planner/util/curve.h"

namespace motley::planner {

std::vector<double> SecondsBySpline(const std::vector<int64_t>& probed, const std::function<double(int64_t)>& seconds) {
  if (probed.empty()) return {};
  std::vector<double> xs, ys;
  for (const int64_t batch : probed) {
    xs.push_back(static_cast<double>(batch));
    ys.push_back(std::max(seconds(batch), ys.empty() ? 0 : ys.back()));
  }
  const Curve curve = Curve::Pchip(xs, ys);
  std::vector<double> table = {0};
  for (int64_t batch = 1; batch <= probed.back(); ++batch) table.push_back(curve.At(static_cast<double>(batch)));
  return table;
}

}  // namespace motley::planner
