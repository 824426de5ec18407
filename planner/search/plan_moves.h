// Small changes of a plan: the neighbours that a local search looks at. Every neighbour keeps the plan's rules (batches add up,
// every layer once); whether it fits and what it costs is for the caller to price.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct Move {
  std::string what;  // "one layer from stage 2 to stage 0"
  Plan plan;
};

// What is alike changes together (plan_classes.h): pipelines of one shape, units of one make.
//   layers        one layer from the busiest stage of a pipeline to another
//   units         microbatches, batches, recomputation, devices (unit_moves.h)
//   schedule      another family; more or fewer ministages; more or fewer microbatches in flight (in_flight.h)
//   order         neighbouring stages exchanged
//   sharding      another ZeRO stage of a stage; shares by free memory
//   offload       what waits on hosts, when units are stepped (offload_moves.h)
//   pipelines     samples from the slowest pipeline to the fastest
// Bounded (some dozens), in a fixed order. `plan` has been evaluated: busy seconds guide the choice.
std::vector<Move> Neighbours(const Setting& setting, const Plan& plan);

// Of them those to another family, or to other ministages.
std::vector<Move> ScheduleMoves(const Setting& setting, const Plan& plan);

// Layers of each stage of a pipeline, dealt to `ministages` ministages round robin. counts[s] >= ministages.
void AssignLayers(const std::vector<int64_t>& counts, int64_t ministages, PipelinePlan* pipeline);
std::vector<int64_t> LayerCounts(const PipelinePlan& pipeline);

// Recomputation sets of a rank of a unit of so many, from none to all, adding the operator with the fewest seconds for a byte
// first; only none and all where the limits or the request want that.
std::vector<OpSet> RecomputeLadder(const Setting& setting, int kind, size_t ranks);

// The kind of the rank's device. Its label is only what is looked at first: there are fewer kinds than devices.
int KindOfRank(const Setting& setting, const RankPlan& rank);

// The recomputation of a rank of a unit of `ranks` one operator further on its ladder (+1) or back (-1); the end of the ladder
// stays.
OpSet SteppedRecompute(const Setting& setting, const RankPlan& rank, size_t ranks, int step);

}  // namespace motley::planner
