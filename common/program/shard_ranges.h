// Hybrid sharding (PyTorch FSDP, Zhao et al. 2023, section 3.2.2): of several pipelines one rank owns an element
// (ownership.h), and in a stage that shards parameters or gradients (ZeRO 2, 3) one rank has it in its shard between uses.
// Owners give shards the parameters once a step and get the sums of gradients from them. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model_slice.h"
#include "common/program/ownership.h"
#include "common/program/program.h"

namespace motley {

// Who of `members`, the ranks of one stage, has which elements of a block in its shard. A rank has there what it owns. What ranks
// of earlier pipelines own (lower numbers) goes to who has what follows it, what later ones own to who has what is before: so
// each piece that the pipelines cut alike is in one shard. Where none of them owns anything, the first has all.
OwnedRanges ShardRanges(const OwnedRanges& owned, const std::vector<int32_t>& members);

// A part of a unit that ranks shard, all of it or what several of them have of a slice, and in whose shard it is.
struct ShardedPart {
  OwnedRanges shards;
  std::vector<SliceRun> runs;
};
// The rank's shard of a unit of such parts, and where it is in an array of that alone (`in_slice`).
std::vector<SliceRun> RunsOfShard(int32_t rank, const std::vector<ShardedPart>& parts);

// Of what an array has, `runs`, what lies in these elements of it.
std::vector<SliceRun> RunsWithin(const std::vector<SliceRun>& runs, const ArrayRange& elements);

// By unit: the shards of a program's rank, as its instructions gather from them and sum into them. `runs`: of its whole arrays.
std::vector<std::vector<SliceRun>> ShardsByUnit(const Program& program, const Ownership& ownership,
                                                const std::vector<std::vector<SliceRun>>& runs);

}  // namespace motley
