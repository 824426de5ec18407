// The program writer's last two passes: from a stage's steps to the program of one of its ranks.
#pragma once

#include <vector>

#include "common/model/op_set.h"
#include "common/program/offload_kinds.h"
#include "common/program/program.h"
#include "planner/lowering/stage_steps.h"
#include "planner/lowering/transfer_pass.h"

namespace motley::planner {

struct RankTraits {
  bool training = true;
  OpSet recompute;   // of the layers
  int32_t head = 0;  // the model's last unit
  // Of a tensor-parallel unit, else -1. The leader sends and receives for all; what it received, it broadcasts.
  int32_t tp_group = -1, leader = -1;
  bool follows = false;  // it is not the leader
};

struct RankOperations {
  std::vector<Operation> operations;
  // By receive, in their order: so many passes of units has the rank computed when it is sent (recomputing one is another).
  std::vector<int64_t> computed_when_sent;
  // Inputs on their way to host memory that may still be there when a forward begins.
  size_t copies_ahead = 2;
};

// What the rank does, in order: the member's steps or, of a tensor-parallel unit, what they are for one of its ranks. This adds
// the second run of what layers did not keep, zeroes where the rank has nothing to add to a sum, and the end of the step.
RankOperations OperationsOf(const StageSteps& stage, const StageMember& member, const RankTraits& rank);

// What of a rank, or of one of a class's ranks, waits in host memory while it is not needed.
struct CopyTraits {
  OffloadKinds offloads;
  bool steps_in_turn = false;  // a unit is stepped once its sum is there, not at the step's end (Zorse section 3.1.2)
  bool sums_stay = false;  // that sum is in a buffer in turn, made once, and leaves it for the step; else it was added elsewhere
  std::vector<int32_t> units;  // of the rank
  int32_t head = 0;            // the model's last unit
  int32_t rank = 0;            // the first of the class's
  int64_t prefetch = 1;        // StagePlan::prefetch
  // What is used and what comes ahead of its use, each in a slot of its own.
  size_t slots() const { return static_cast<size_t>(prefetch) + 1; }
};

// With copies to host memory and back: inputs `prefetch` backwards ahead of their use, into slots in turn, then state.
std::vector<Operation> WithCopies(std::vector<Operation> operations, const CopyTraits& traits);

// Of state alone: parameters before each gather, sums behind them, a unit's optimizer around its step, into slots behind those of
// inputs, `prefetch` of the next before this one is stepped. It also puts the steps where they are in turn.
std::vector<Operation> WithStateCopies(std::vector<Operation> operations, const CopyTraits& traits);

// The same as instructions. `after` follows from the operations alone: who fills a buffer and who frees it, what brings a
// microbatch over a border, what makes the loss, what leaves room for what comes next. It names only what the instruction's lane
// would not wait for anyway.
std::vector<Instruction> WithDependencies(RankOperations rank);

}  // namespace motley::planner
