// What fields and traits of operations are made of (operation.h). Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace motley {

// kCopy: between device and host memory.
enum class Lane { kCompute, kCollective, kSend, kReceive, kCopy };
inline constexpr int kNumLanes = 5;

// What a Forward keeps for its Backward. kNothing: evaluation only; the output lives until the next unit consumed it.
enum class Keep { kAll, kBoundary, kNothing };
constexpr std::array<std::string_view, 3> WordsOf(Keep) { return {"all", "boundary", "nothing"}; }

// The part of a unit that a compute instruction runs. A layer is attention (with its norm and residual), then mlp; a head is
// logits, then loss. Between the two is a sum over a tensor-parallel group.
enum class UnitSegment { kWhole, kAttention, kMlp, kLogits, kLoss };
constexpr std::array<std::string_view, 5> WordsOf(UnitSegment) { return {"", "attention", "mlp", "logits", "loss"}; }

// What of a microbatch a collective moves.
// kActivation: all_reduce: the output of a unit or segment; broadcast: a unit's input.
// kGradient:   the gradient with respect to the input of a unit or segment.
// kRows:       of each row (token) of a head's logits the maximum, the sum of exponentials and the target's logit.
enum class Exchanged { kActivation, kGradient, kRows };
constexpr std::array<std::string_view, 3> WordsOf(Exchanged) { return {"activation", "gradient", "rows"}; }

// Elements [first, first + count) of a unit's array; a count of 0 means the whole array.
struct ArrayRange {
  int64_t first = 0, count = 0;
  bool whole() const { return count == 0; }
  int64_t end() const { return first + count; }
  friend bool operator==(const ArrayRange&, const ArrayRange&) = default;
};

enum class InEvaluation { kNo, kYes };
enum class AfterScalars { kNo, kYes };

// What is true of all instructions of one operation. Every value is given by each: a default would be wrong without a word.
struct OperationTraits {
  constexpr OperationTraits(std::string_view name, Lane lane, InEvaluation in_evaluation, AfterScalars after_scalars)
      : name(name), lane(lane), in_evaluation(in_evaluation), after_scalars(after_scalars) {}

  std::string_view name;       // the word of the text form
  Lane lane;                   // collective: the group's ranks together, matched by their order; send and receive: in pairs
  InEvaluation in_evaluation;  // whether an evaluation program may have it
  AfterScalars after_scalars;  // whether it may stand behind reduce_scalars
};

}  // namespace motley
