// Changes of how wide a stage's units are: two become one tensor-parallel unit, or one becomes two. Part of plan_moves.h.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/plan_moves.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Appends to `moves`, for each stage of a class of like pipelines, the first of those that are alike and all of them:
//   joined   two units of one width and node; like cards by halves, two single cards that are unlike by whole key-value heads in
//            proportion to their speed
//   cut      a unit of an even number of ranks with even shares
// A new unit has the batch of those that it is made of, in as many microbatches. Shares of sharded state start anew, even.
void AddWidthMoves(const Setting& setting, const Plan& plan, std::vector<Move>* moves);

}  // namespace motley::planner
