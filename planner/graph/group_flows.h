// What ranks move together: collectives of a stage, sums between stages and pipelines.
#pragma once

#include <span>
#include <vector>

#include "planner/cluster/links.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// A ring in which each device has its part of what all have together. An all-reduce is even, as each has all.
Flow RingByParts(const Links& links, Collective collective, std::span<const int> devices, double bytes,
                 std::vector<double> parts);

// A collective of a stage's units over `bytes` of the unsharded array. Ranks of tensor-parallel units hold slices: the array is
// cut where any unit cuts it, the ranks that hold a piece make a ring that carries it, the rings run together. So a single rank
// beside a pair is in two rings, each with half the bytes. By shares of the state.
Flow GroupFlow(const Links& links, const PlanView& view, const StageView& stage, Collective collective, double bytes);

// A collective over several sets of ranks (a unit each) that each hold `bytes` spread over them: as many rings as the
// smallest set has ranks, each through one rank of every set, each with its part of the bytes.
Flow AcrossFlow(const Links& links, const std::vector<std::vector<int>>& sets, Collective collective, double bytes);

// Sets for it: the devices of each unit of the stages, or of all ranks of a stage that keep shards of what the collective moves,
// as they do from a ZeRO stage on.
inline constexpr int kNeverSharded = 4;
std::vector<std::vector<int>> SetsOf(const PlanView& view, std::span<const int> stages, int sharded_from);

// A tied embedding whose ends are two stages, where the engine runs the plan: the ranks of both in one ring, the owners' shares
// all at the embedding's end. `bytes`: of the table.
Flow TiedFlow(const Links& links, const PlanView& view, int embedding_stage, int head_stage, Collective collective, double bytes);

// The part of a stage's state that a rank's optimizer steps.
double OwnedPart(const PlanView& view, const RankView& rank);

}  // namespace motley::planner
