#include "planner/plan/placement.h"

#include <algorithm>
#include <cmath>

namespace motley::planner {

std::vector<int64_t> UnitElements(const std::vector<UnitSpec>& layout) {
  std::vector<int64_t> elements;
  for (const UnitSpec& unit : layout) elements.push_back(unit.num_elements);
  return elements;
}

std::vector<UnitPlacement> PlaceByShares(const std::vector<int64_t>& elements, const std::vector<double>& shares) {
  size_t last_owner = 0;
  for (size_t r = 0; r < shares.size(); ++r) {
    if (shares[r] > 0) last_owner = r;
  }
  std::vector<UnitPlacement> placement;
  for (const int64_t all : elements) {
    std::vector<int64_t> bounds = {0};
    double sum = 0;
    for (size_t r = 0; r < shares.size(); ++r) {
      sum += shares[r];
      const auto bound = static_cast<int64_t>(std::llround(sum * static_cast<double>(all)));
      bounds.push_back(r >= last_owner ? all : std::clamp(bound, bounds.back(), all));
    }
    placement.push_back({std::move(bounds)});
  }
  return placement;
}

std::vector<int64_t> Microbatches(int64_t batch, int64_t microbatch) {
  if (batch == 0) return {};
  std::vector<int64_t> sizes(static_cast<size_t>(batch / microbatch), microbatch);
  if (batch % microbatch != 0) sizes.push_back(batch % microbatch);
  return sizes;
}

}  // namespace motley::planner
