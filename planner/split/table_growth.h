// How far a kind's tables of microbatch sizes must reach for an exact answer.
#pragma once

#include <cstdint>

#include "planner/split/split_problem.h"

namespace motley::planner {

int64_t CountDevices(const SplitProblem& problem);

// Makes tables that are shorter reach to somewhat more than an equal part of the batch: what a fast device is likely to get in
// one microbatch. `extend` may be null: then the tables are whole.
void StartTables(const SplitProblem& problem, int64_t largest, const ExtendTables& extend);

// Doubles the tables in which a larger microbatch may still be part of a split that beats `seconds`: one that takes as long as
// that by itself, or that no memory holds, cannot, nor can a larger. False when none was.
bool GrowTables(const SplitProblem& problem, int64_t largest, double seconds, const ExtendTables& extend);

}  // namespace motley::planner
