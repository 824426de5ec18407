// From a plan's shares to who owns which elements (common/program/ownership.h). Searches and plans by hand carry shares; a
// finished plan carries what they come to, and its shares follow from that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/program/ownership.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// Blocks of the model that stage `s` holds: embedding, layers, head. `num_blocks`: of the model.
std::vector<size_t> UnitsOfStage(const PipelinePlan& pipeline, size_t s, size_t num_blocks);

// The plan's own, or what its shares come to: every block of a stage is cut in the stage's ranks' order, rounded to whole
// elements. A stage that shards nothing (ZeRO 0) is cut evenly, a tensor-parallel unit's part at its ranks' tensor-parallel
// shares. Several pipelines share what their ranks hold alike: a rank owns a part of each piece. `elements`: of each block. The
// plan has a shape that Validate accepts.
Ownership OwnershipOf(const Plan& plan, const std::vector<int64_t>& elements);

// Whether nothing is sharded in a stage of several units, or between several pipelines.
bool HasReplicas(const Plan& plan);

// ZeRO 0 becomes ZeRO 1 in even shares: one rank steps an element and hands the value on (docs/pipelines.md).
void ShareReplicas(Plan* plan);

// Gives the plan the ownership that its shares come to, unless it has one, and its ranks the shares that follow, without
// replicas.
void GiveOwnership(const std::vector<int64_t>& elements, Plan* plan);

// Of a plan with ownership: its ranks' shard ratios, each its part of what its stage's ranks own.
void SetShardRatios(Plan* plan);

}  // namespace motley::planner
