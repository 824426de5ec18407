// From shares and batches to what a stage of a plan says: who owns which elements, which microbatches a rank computes.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/parameters.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// Elements of each unit of a layout.
std::vector<int64_t> UnitElements(const std::vector<UnitSpec>& layout);

// Every unit is cut at the same ratios, rounded to whole elements. Shares of 0 own nothing. `elements`: of each unit.
std::vector<UnitPlacement> PlaceByShares(const std::vector<int64_t>& elements, const std::vector<double>& shares);

// b samples in microbatches of m, the last one smaller.
std::vector<int64_t> Microbatches(int64_t batch, int64_t microbatch);

}  // namespace motley::planner
