// Runs all ranks' programs side by side, each in the order of its lanes, without doing anything: who waits for whom, and in what
// order everything can happen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/program/program.h"

namespace motley::planner {

struct RankInstruction {
  size_t rank = 0;
  int32_t instruction = 0;
};

// Told of every instruction once, after all that it waits for.
class WalkListener {
 public:
  virtual ~WalkListener() = default;
  virtual void Ran(size_t rank, int32_t instruction) = 0;  // alone: on the compute or copy lane
  // A collective, or what a tensor-parallel group computes.
  virtual void Met(const std::vector<RankInstruction>& members) = 0;
  virtual void HandedOver(RankInstruction send, RankInstruction receive) = 0;
};

// `programs` by rank, each has passed Validate. An instruction runs when everything before it on its lane and all of its `after`
// have run; a group's collectives meet in their order on its ranks' lanes, a send meets the next receive of its peer's lane, and
// both block their lanes until then. `listener` may be nullptr. FAILED_PRECONDITION: none, programs that do not know the same
// groups, collectives or hand-overs that do not match, or a deadlock: names every rank and lane that is stuck, its instruction
// and what it waits for, and where it comes of collectives that have no common order, two of them and the rank where they cross.
absl::Status WalkPrograms(const std::vector<Program>& programs, WalkListener* listener);

// Whether they come to their end together. Before anything starts.
inline absl::Status CheckOrder(const std::vector<Program>& programs) { return WalkPrograms(programs, nullptr); }

}  // namespace motley::planner
