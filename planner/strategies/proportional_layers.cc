#include "planner/strategies/proportional_layers.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace motley::planner {

std::vector<int64_t> ProportionalLayers(int64_t layers, const std::vector<double>& weights) {
  if (static_cast<int64_t>(weights.size()) > layers) return {};
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> wanted(weights.size());
  std::vector<int64_t> result(weights.size());
  int64_t left = layers;
  for (size_t i = 0; i < weights.size(); ++i) {
    wanted[i] = static_cast<double>(layers) * weights[i] / sum;
    result[i] = std::max<int64_t>(1, static_cast<int64_t>(wanted[i]));
    left -= result[i];
  }
  // More than was wanted in all is possible, since nobody gets less than one.
  for (; left != 0; left += left > 0 ? -1 : 1) {
    size_t best = weights.size();
    double best_lack = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (left < 0 && result[i] == 1) continue;
      const double lack = (wanted[i] - static_cast<double>(result[i])) * (left > 0 ? 1 : -1);
      if (best == weights.size() || lack > best_lack) best = i, best_lack = lack;
    }
    result[best] += left > 0 ? 1 : -1;
  }
  return result;
}

}  // namespace motley::planner
