// The program: what one rank does in one step, as data. A lowering writes it, Validate and the planner check it, the engine
// walks it and knows no other schedule. See docs/program.md.
//
// Each instruction runs on a lane; a lane runs its instructions in program order; `after` lists further instructions
// (earlier in the vector, on any lane) that must have finished. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/operation.h"

namespace motley {

// Training: forward, backward, optimizer. Evaluation: forward and the sum of the loss only.
enum class ProgramKind { kTraining, kEvaluation };

struct Instruction {
  Operation op;
  std::vector<int32_t> after;  // indices of instructions, ascending, each less than this one's
};

struct Program {
  int32_t version = 1;
  ProgramKind kind = ProgramKind::kTraining;
  int32_t rank = 0;
  int32_t world = 1;
  int32_t num_units = 0;
  std::vector<int64_t> microbatches;       // samples of each; may be empty
  std::vector<int64_t> parameter_buffers;  // elements of each
  std::vector<int64_t> gradient_buffers;   // elements of each
  std::vector<Instruction> instructions;
};

// Text form, one instruction a line; round-trips exactly (docs/program.md has the grammar):
//   program 1 training rank 0 of 5 units 8 microbatches 4,4,3
//   parameters 65536,65536
//   gradients 65536
//   0 gather unit=0 buffer=0
//   1 forward unit=0 mb=0 buffer=0 keep=all after=0
std::string ToText(const Program& program);
// INVALID_ARGUMENT names the line.
absl::StatusOr<Program> ParseProgram(std::string_view text);

// Local rules: indices in range, dependencies earlier, every unit gathered before it is used and not released in
// between, one Forward and one Backward per unit and microbatch in the right order, recompute exactly where the
// boundary alone was kept, every unit's gradient reduced after its last Backward, one ReduceScalars before one
// OptimizerStep; an evaluation program has none of Backward, ReduceScatter, OptimizerStep. FAILED_PRECONDITION names rank,
// instruction and rule.
absl::Status Validate(const Program& program);

}  // namespace motley
