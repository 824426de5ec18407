// From a plan's shares to who owns which elements (common/program/ownership.h). Searches and plans by hand carry shares; a
// finished plan carries what they come to, and its shares follow from that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/model/model.h"
#include "common/program/ownership.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// Blocks of the model that stage `s` holds: embedding, layers, head. `num_blocks`: of the model.
std::vector<size_t> UnitsOfStage(const PipelinePlan& pipeline, size_t s, size_t num_blocks);

// The plan's own, or what its shares come to, rounded to whole elements. Every block of a stage is cut in the stage's ranks'
// order. Where units are tensor-parallel and cut between parts, each slice is cut among the ranks that compute with it, and what
// is not divided among all of the stage. A stage that shards nothing (ZeRO 0) is cut evenly, of a tensor-parallel unit at its
// ranks' tensor-parallel shares. Several pipelines share what their ranks hold alike: a rank owns a part of each piece. The plan
// has a shape that Validate accepts.
Ownership OwnershipOf(const Plan& plan, const ModelShape& model);
// Where no model is at hand, only the elements of each block: slices then count as if they were each one run of an array.
Ownership OwnershipOf(const Plan& plan, const std::vector<int64_t>& elements);

// Whether nothing is sharded in a stage of several units, or between several pipelines.
bool HasReplicas(const Plan& plan);

// ZeRO 0 becomes ZeRO 1 in even shares: one rank steps an element and hands the value on (docs/inside/pipelines.md).
void ShareReplicas(Plan* plan);

// Finishes a plan: gives it the ownership that its shares come to, unless it has one, and its ranks the shares that follow,
// without replicas. Tensor-parallel shares that are whole parts but for rounding become exactly these.
void GiveOwnership(const ModelShape& model, Plan* plan);

// Of a plan with ownership: its ranks' shard ratios, each its part of what its stage's ranks own.
void SetShardRatios(Plan* plan);

}  // namespace motley::planner
