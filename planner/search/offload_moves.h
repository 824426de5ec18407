// Moves of what waits in host memory, and of when units are stepped: a part of a plan's neighbours (plan_moves.h).
#pragma once

#include <vector>

#include "planner/search/plan_moves.h"

namespace motley::planner {

// A kind of offload on or off, where host memory is known; a unit stepped behind its sum, or all at the end; what waits further
// ahead or less.
void AddOffloadMoves(const Setting& setting, const Plan& plan, std::vector<Move>* moves);

// What a move has left without its reason goes with it (plan_validate.cc): gradients wait for moments, of what is summed once;
// units are stepped in turn where ministages are.
void DropUnlawfulOffload(Plan* plan);

}  // namespace motley::planner
