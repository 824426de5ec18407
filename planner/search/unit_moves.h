// Small changes of who computes what inside a plan's stages: microbatches, batches, recomputation, devices. Part of plan_moves.h.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/plan_moves.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Appends to `moves` changes of `plan` (evaluated), each for a class of like units or for all:
//   microbatches    of a size: one sample more or fewer, twice or half; all units in one round more or fewer, in twice or half as
//   many recomputation   none, full, one operator more or fewer on the ladder batches         a sample from each unit of the
//   stage's busiest class to its least busy one devices         a unit from the stage that waits most to the busiest of its
//   pipeline
void AddUnitMoves(const Setting& setting, const Plan& plan, std::vector<Move>* moves);

// Shares of sharded state start anew when a stage's ranks change: even; a unit that is left alone stores what it computes.
void ShareEvenly(StagePlan* stage);

// `batch` in `count` microbatches (fewer where the batch is smaller), sizes at most one apart and mixed evenly, so that after any
// number of microbatches units of one stage and the next have come equally far.
std::vector<int64_t> EvenParts(int64_t batch, int64_t count);

}  // namespace motley::planner
