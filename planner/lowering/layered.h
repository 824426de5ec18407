// Lowers a plan of one stage to one program per rank: layered gradient accumulation (Cephalo section 2.2).
//
// Units u = 0 (embedding), 1..L (layers), L+1 (head). All microbatches of a unit run before the next unit.
//   forward   G0 G1 | F0 | release 0, G2 | F1 | release 1, G3 | F2 ...       the gather of u+1 runs while u computes
//   turn      the last two units stay gathered: their two buffers are not needed by anything else
//   backward  B(L+1) | release, G(L-1), RS(L+1) | B(L) | release, G(L-2), RS(L) | ...
//   end       reduce scalars, optimizer step
// Unit u lives in parameter buffer u % 2 and gradient buffer u % 2: one in use, one being gathered (or reduced). A tied
// embedding has a third buffer of each and stays gathered from the first forward to its own backward; the head's part of its
// gradient is reduced right after the head, so that the buffer is free for the embedding's own part, and owners add both.
//
// Invariant: the order of the collective lane depends on the model alone, never on a rank's microbatches: collectives match
// by order. The gather stands before the reduce-scatter that becomes ready with it: both are needed at the same time by
// B(u), but a recomputation needs the gather alone.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model.h"
#include "common/model/parameters.h"
#include "common/program/program.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// Elements of the buffers that every rank's program declares.
struct LayeredBuffers {
  std::vector<int64_t> parameters, gradients;
  int64_t total() const {
    int64_t sum = 0;
    for (int64_t e : parameters) sum += e;
    for (int64_t e : gradients) sum += e;
    return sum;
  }
};
// `layout` is the model's ParameterLayout.
LayeredBuffers BuffersOf(const ModelShape& model, const std::vector<UnitSpec>& layout);

// One program per rank, in the plan's order. Both give the plan's Validate errors; the programs pass motley::Validate.
absl::StatusOr<std::vector<Program>> LowerTraining(const Plan& plan, const ModelShape& model);
// The validation pass: forward only. `microbatches` by rank.
absl::StatusOr<std::vector<Program>> LowerEvaluation(const ModelShape& model,
                                                     const std::vector<std::vector<int64_t>>& microbatches);

}  // namespace motley::planner
