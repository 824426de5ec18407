// Small changes of a plan: the neighbours that a local search looks at. Every neighbour keeps the plan's rules (batches add up, every
// layer once); whether it fits and what it costs is for the caller to price.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "planner/setting.h"

namespace motley::planner {

struct Move {
  std::string what;   // "one layer from stage 2 to stage 0"
  Plan plan;
};

// Units of a stage that are alike (same cards, microbatches, shares of work and recomputation) change together.
//   layers        one layer from the busiest stage of a pipeline to another
//   microbatches  of one class of units, or of all: one more or fewer, twice or half
//   recomputation of one class, or of all: one operator more or fewer, in the order of seconds for a byte; none; full
//   schedule      another family; more or fewer ministages
//   sharding      another ZeRO stage of a stage; offload on or off, where host memory is known
//   pipelines     samples from the slowest pipeline to the fastest
// Bounded (a few dozen), in a fixed order. `plan` has been evaluated: busy seconds guide the choice.
std::vector<Move> Neighbours(const Setting& setting, const Plan& plan);

// Layers of each stage of a pipeline, dealt to `ministages` ministages round robin. counts[s] >= ministages.
void AssignLayers(const std::vector<int64_t>& counts, int64_t ministages, PipelinePlan* pipeline);
std::vector<int64_t> LayerCounts(const PipelinePlan& pipeline);

// Recomputation sets from none to all, adding the operator with the fewest seconds for a byte first.
std::vector<OpSet> RecomputeLadder(const Setting& setting, int kind);

// The rank's recomputation one operator further on its ladder (+1) or back (-1); the end of the ladder stays.
std::string SteppedRecompute(const Setting& setting, const RankPlan& rank, int step);

}  // namespace motley::planner
