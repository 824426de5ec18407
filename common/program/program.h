// The program: what one rank does in one step, as data. A lowering writes it, Validate and the planner check it, the engine
// walks it and knows no other schedule. See docs/inside/program.md.
//
// Each instruction runs on a lane; a lane runs its instructions in program order; `after` lists further instructions
// (earlier in the vector, on any lane) that must have finished. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/operators.h"
#include "common/program/offload_kinds.h"
#include "common/program/operation.h"

namespace motley {

// Training: forward, backward, optimizer. Evaluation: forward and the sum of the loss only.
enum class ProgramKind { kTraining, kEvaluation };

struct Instruction {
  Operation op;
  std::vector<int32_t> after;  // indices of instructions, ascending, each less than this one's
};

// Samples [first, first + samples) of the step's global batch.
struct Microbatch {
  int64_t samples = 0, first = 0;
  int64_t end() const { return first + samples; }
  friend bool operator==(const Microbatch&, const Microbatch&) = default;
};

// `home_of` >= 0: the buffer is where that unit's array is between steps too, and what the rank owns of it is a range in it (in
// mixed precision a range of gradients only; that of parameters, of another type, is cast into it by the gather). Such a buffer
// of parameters is gathered once a step and never released; one of gradients is reduced once and takes all of its unit's.
// `num_units` > 1: there is room for so many consecutive units at once, one behind the other; a home is theirs from `home_of` on.
// `shard_group` >= 0: a home of the rank's shard alone, of what it keeps of the unit among that group's ranks (shard_ranges.h).
// Into buffers that are no homes the unit's parameters come from those ranks' shards then, and its gradients' sums go to these.
struct UnitBuffer {
  int64_t elements = 0;
  int32_t home_of = -1;
  int32_t num_units = 1;
  int32_t shard_group = -1;
  bool IsShard() const { return shard_group >= 0; }
  bool IsHomeOf(int32_t unit) const { return home_of >= 0 && home_of <= unit && unit - home_of < num_units; }
  friend bool operator==(const UnitBuffer&, const UnitBuffer&) = default;
};

inline constexpr int32_t kProgramVersion = 6;

struct Program {
  int32_t version = kProgramVersion;
  ProgramKind kind = ProgramKind::kTraining;
  int32_t rank = 0;
  int32_t world = 1;
  int32_t num_units = 0;                     // of the model
  std::vector<int32_t> units;                // that this rank computes or keeps a part of; ascending
  std::vector<std::vector<int32_t>> groups;  // of all ranks' programs: members in ring order; collectives name one by its index
  std::vector<Microbatch> microbatches;      // may be empty
  int64_t head_rows = kHeadChunkTokens;      // of logits that a whole head's backward makes at once
  std::vector<UnitBuffer> parameter_buffers, gradient_buffers;
  OffloadKinds offloads;       // what of the rank waits in host memory
  std::vector<int64_t> slots;  // bytes on the device, each for what comes back from there
  std::vector<Instruction> instructions;
};

// Text form, one instruction a line; round-trips exactly (docs/inside/program.md has the grammar):
//   program 6 training rank 0 of 5 units 8 microbatches 4@0,4@4,3@8
//   holds 0,1,2
//   groups 0,1 2,3,4
//   parameters 65536,65536:1
//   gradients 65536
//   offloads -
//   slots -
//   0 gather block=0 buffer=0 group=0
//   1 forward block=0 mb=0 buffer=0 keep=all after=0
std::string ToText(const Program& program);
// INVALID_ARGUMENT names the line.
absl::StatusOr<Program> ParseProgram(std::string_view text);

// Local rules: indices in range, dependencies earlier, every unit gathered before it is used and not released in between; every
// unit that the rank holds runs one Forward and one Backward of each microbatch in the right order, on what the unit before (or
// behind) it made or what was received; recompute exactly where the boundary alone was kept; what other ranks need is sent,
// every sample once; every unit's gradient reduced after its last Backward; one ReduceScalars before one OptimizerStep; an
// evaluation program has none of the backward. FAILED_PRECONDITION names rank, instruction and rule.
absl::Status Validate(const Program& program);

}  // namespace motley
