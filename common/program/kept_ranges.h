// Hybrid sharding (PyTorch FSDP, Zhao et al. 2023, section 3.2.2): of several pipelines one rank owns an element
// (ownership.h), and a stage whose ranks share out parameters or gradients (ZeRO 2, 3) has one rank that keeps it between uses.
// Owners give keepers the parameters once a step and get the sums of gradients from them. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/model_slice.h"
#include "common/program/ownership.h"
#include "common/program/program.h"

namespace motley {

// Who of `members`, the ranks of one stage, keeps which elements of a block. A rank keeps what it owns. What ranks of earlier
// pipelines own (lower numbers) goes to who keeps what follows it, what later ones own to who keeps what is before: so each piece
// that the pipelines cut alike has one keeper. Where none of them owns anything, the first keeps all.
OwnedRanges KeptRanges(const OwnedRanges& owned, const std::vector<int32_t>& members);

// A part of a unit that ranks share out, all of it or what several of them have of a slice, and who keeps what.
struct SharedOut {
  OwnedRanges kept;
  std::vector<SliceRun> runs;
};
// What `rank` keeps of a unit of such parts, and where in its array of that alone (`in_slice`).
std::vector<SliceRun> KeptRuns(int32_t rank, const std::vector<SharedOut>& parts);

// Of what an array has, `runs`, what lies in these elements of it.
std::vector<SliceRun> RunsWithin(const std::vector<SliceRun>& runs, const ArrayRange& elements);

// By unit: what a program's rank keeps in shards, as its instructions share units out. `runs`: of its whole arrays.
std::vector<std::vector<SliceRun>> ShardRuns(const Program& program, const Ownership& ownership,
                                             const std::vector<std::vector<SliceRun>>& runs);

}  // namespace motley
