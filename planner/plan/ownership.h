// Who owns which elements of a plan's training state. Everybody who asks, asks here: who keeps an element's master copy and
// moments, who steps it, whose gradient counts in the norm, who writes it to a checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"

namespace motley::planner {

// Elements [begin, end) of a unit's flat array.
struct OwnedRange {
  int rank = 0;  // in the plan's order
  int64_t begin = 0, end = 0;
  // Replicas own the same elements: all keep and step them, the first in the plan's order counts them in the norm and writes
  // them.
  bool first = true;
  friend bool operator==(const OwnedRange&, const OwnedRange&) = default;
};
using Ownership = std::vector<std::vector<OwnedRange>>;  // by unit of the model; no empty ranges

// Units of the model that stage `s` holds (embedding, layers, head), in the order of its placement. `num_units`: of the model.
std::vector<size_t> UnitsOfStage(const PipelinePlan& pipeline, size_t s, size_t num_units);

// The stage's placement, or what its shares come to where it has none: of ZeRO 0 the tensor-parallel shares of `ranks`, which
// hold everything once, of the others the shard ratios. `elements`: of each of the stage's units.
std::vector<UnitPlacement> PlacementOf(const StagePlan& stage, const std::vector<const RankPlan*>& ranks,
                                       const std::vector<int64_t>& elements);
// The same of all of the stage's ranks. Not for ZeRO 0.
std::vector<UnitPlacement> PlacementOf(const StagePlan& stage, const std::vector<int64_t>& elements);

// With pipelines_zero_stage the ranks that hold an element in the several pipelines share what they hold alike: a rank then owns
// a part of each piece. `elements`: of each unit of the model. The plan has a shape that Validate accepts.
Ownership OwnershipOf(const Plan& plan, const std::vector<int64_t>& elements);

// What the engine does with it: every element has one rank that keeps its moments and steps it, and hands the value on to who
// else needs it. Where nothing is sharded, too, there in even parts: kernels of unlike devices differ in the last bits, so
// replicas that each step themselves would drift. Of one pipeline of single-device units. By unit of the model, bounds over all
// ranks.
std::vector<UnitPlacement> SteppersOf(const Plan& plan, const std::vector<int64_t>& elements);

}  // namespace motley::planner
