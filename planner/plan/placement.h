// From shares and batches to what a stage of a plan says: where an array is cut, which microbatches a rank computes.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/parameters.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// Elements of each unit of a layout.
std::vector<int64_t> UnitElements(const std::vector<UnitSpec>& layout);

// An array of so many elements cut at the shares, which add up to 1, rounded to whole elements: share i gets [cuts[i], cuts[i +
// 1]). A share of 0 gets nothing.
std::vector<int64_t> CutByShares(int64_t elements, const std::vector<double>& shares);

// b samples in microbatches of m, the last one smaller.
std::vector<int64_t> Microbatches(int64_t batch, int64_t microbatch);

}  // namespace motley::planner
