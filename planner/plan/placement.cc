#include "planner/plan/placement.h"

#include <algorithm>
#include <cmath>

namespace motley::planner {

std::vector<int64_t> UnitElements(const std::vector<UnitSpec>& layout) {
  std::vector<int64_t> elements;
  for (const UnitSpec& unit : layout) elements.push_back(unit.num_elements);
  return elements;
}

std::vector<int64_t> CutByShares(int64_t elements, const std::vector<double>& shares) {
  size_t last = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > 0) last = i;
  }
  std::vector<int64_t> cuts = {0};
  double sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i];
    const auto cut = static_cast<int64_t>(std::llround(sum * static_cast<double>(elements)));
    cuts.push_back(i >= last ? elements : std::clamp(cut, cuts.back(), elements));
  }
  return cuts;
}

std::vector<int64_t> Microbatches(int64_t batch, int64_t microbatch) {
  if (batch == 0) return {};
  std::vector<int64_t> sizes(static_cast<size_t>(batch / microbatch), microbatch);
  if (batch % microbatch != 0) sizes.push_back(batch % microbatch);
  return sizes;
}

}  // namespace motley::planner
