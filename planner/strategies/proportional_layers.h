// Layers dealt in proportion to weights: largest remainders, at least one each.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

// Positive weights. Adds up to `layers`; empty when there are more weights than layers. Ties go to the first.
std::vector<int64_t> ProportionalLayers(int64_t layers, const std::vector<double>& weights);

}  // namespace motley::planner
