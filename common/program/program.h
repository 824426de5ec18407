// The program: what one rank does in one training step, as data. A lowering writes it, Validate and the simulator
// check it, the engine walks it and knows no other schedule. See docs/program.md.
//
// Each instruction runs on a lane; a lane runs its instructions in program order; `after` lists further instructions
// (earlier in the vector, on any lane) that must have finished. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace motley {

enum class Lane { kCompute, kCollective };
inline constexpr int kNumLanes = 2;

// Training: forward, backward, optimizer. Evaluation: forward and the sum of the loss only.
enum class ProgramKind { kTraining, kEvaluation };

// What a Forward keeps for its Backward. kNothing: evaluation only; the output lives until the next unit consumed it.
enum class Keep { kAll, kBoundary, kNothing };

// All ranks together: assemble unit's parameters, each rank giving the range it owns, into parameter buffer `buffer`.
struct Gather {
  int32_t unit;
  int32_t buffer;
};
// The parameter buffer may be reused. Frees nothing: buffers are declared by the program.
struct Release {
  int32_t buffer;
};
// Needs the unit's parameters gathered in `buffer`. A tied head also needs the embedding in `tied_buffer` (else -1).
struct Forward {
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
  Keep keep;
};
// Runs the unit's forward again from its boundary, keeping all. Only after a Forward with Keep::kBoundary.
struct Recompute {
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
};
// Gradients with respect to the unit's input and weights; weight gradients are added into gradient buffer `grad`
// (and `tied_grad` for the embedding's share of a tied head, else -1), which the first microbatch zeroes.
struct Backward {
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
  int32_t grad;
  int32_t tied_grad;
};
// Zeroes gradient buffer `grad`: a rank without samples still contributes to the sum.
struct ZeroGrad {
  int32_t unit;
  int32_t grad;
};
// All ranks together: sum the gradient buffers; each owner adds the sum of its range to its gradient shard.
struct ReduceScatter {
  int32_t unit;
  int32_t grad;
};
// All ranks together: sum of loss, valid tokens, squared gradient norm (float64), stop flag; finds non-finite values.
struct ReduceScalars {};
// Clip, AdamW on the owned ranges, zero the gradient shards. Not applied when anything was not finite.
struct OptimizerStep {};

using Operation =
    std::variant<Gather, Release, Forward, Recompute, Backward, ZeroGrad, ReduceScatter, ReduceScalars, OptimizerStep>;

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

// Gather, ReduceScatter and ReduceScalars: collective. All others, Release included: compute.
Lane LaneOf(const Operation& op);
// The word of the text form: "gather", "reduce_scatter", ...
std::string_view OperationName(const Operation& op);

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
