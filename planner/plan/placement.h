// From shares and batches to what a stage of a plan says: who owns which elements, which microbatches a rank computes.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/parameters.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// Every unit is cut at the same ratios, rounded to whole elements. Shares of 0 own nothing.
std::vector<UnitPlacement> PlaceByShares(const std::vector<UnitSpec>& layout, const std::vector<double>& shares);

// b samples in microbatches of m, the last one smaller.
std::vector<int64_t> Microbatches(int64_t batch, int64_t microbatch);

}  // namespace motley::planner
