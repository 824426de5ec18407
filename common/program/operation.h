// The operations of a program: for each a struct with exactly its fields, and in it a row of traits. What they mean:
// docs/program.md, with what else a new one needs. Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

namespace motley {

// A lane of copies between device and host memory will be the fifth.
enum class Lane { kCompute, kCollective, kSend, kReceive };
inline constexpr int kNumLanes = 4;

// What a Forward keeps for its Backward. kNothing: evaluation only; the output lives until the next unit consumed it.
enum class Keep { kAll, kBoundary, kNothing };

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

// The group's ranks together: assemble unit's parameters, each rank giving the range it owns, into parameter buffer `buffer`.
struct Gather {
  static constexpr OperationTraits kTraits = {"gather", Lane::kCollective, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t buffer;
  int32_t group;
};
// The parameter buffer may be reused. Frees nothing: buffers are declared by the program. Runs where the parameters were last
// used, so that program order alone puts it after its uses.
struct Release {
  static constexpr OperationTraits kTraits = {"release", Lane::kCompute, InEvaluation::kYes, AfterScalars::kYes};
  int32_t buffer;
};
// Needs the unit's parameters gathered in `buffer`. A tied head also needs the embedding in `tied_buffer` (else -1).
struct Forward {
  static constexpr OperationTraits kTraits = {"forward", Lane::kCompute, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
  Keep keep;
};
// Runs the unit's forward again from its boundary, keeping all. Only after a Forward with Keep::kBoundary.
struct Recompute {
  static constexpr OperationTraits kTraits = {"recompute", Lane::kCompute, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
};
// Gradients with respect to the unit's input and weights; weight gradients are added into gradient buffer `grad`
// (and `tied_grad` for the embedding's share of a tied head, else -1), which the first microbatch zeroes.
struct Backward {
  static constexpr OperationTraits kTraits = {"backward", Lane::kCompute, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
  int32_t grad;
  int32_t tied_grad;
};
// Zeroes gradient buffer `grad`: a rank without samples still contributes to the sum.
struct ZeroGrad {
  static constexpr OperationTraits kTraits = {"zero_grad", Lane::kCompute, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t grad;
};
// The group's ranks together: sum the gradient buffers; each owner adds the sum of its range to its gradient shard. In a home
// buffer the sum stays where it is: the shard is that range.
struct ReduceScatter {
  static constexpr OperationTraits kTraits = {"reduce_scatter", Lane::kCollective, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t grad;
  int32_t group;
};
// To `peer`, which receives with the same fields but its own microbatch: samples [first, first + samples) of the pipeline's
// batch, which microbatch `microbatch` has, of the input of `unit`. The unit before it is ours, `unit` is the peer's.
struct SendActivation {
  static constexpr OperationTraits kTraits = {"send_activation", Lane::kSend, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t first;
  int32_t samples;
  int32_t peer;
};
struct ReceiveActivation {
  static constexpr OperationTraits kTraits = {"receive_activation", Lane::kReceive, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t first;
  int32_t samples;
  int32_t peer;
};
// The way back: the gradient with respect to the input of `unit`, which is ours; the unit before it is the peer's.
struct SendGradient {
  static constexpr OperationTraits kTraits = {"send_gradient", Lane::kSend, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t first;
  int32_t samples;
  int32_t peer;
};
struct ReceiveGradient {
  static constexpr OperationTraits kTraits = {"receive_gradient", Lane::kReceive, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t first;
  int32_t samples;
  int32_t peer;
};
// All ranks together: sum of loss, valid tokens, squared gradient norm (float64), stop flag; finds non-finite values. A second
// one is refused for being one, not for where it stands.
struct ReduceScalars {
  static constexpr OperationTraits kTraits = {"reduce_scalars", Lane::kCollective, InEvaluation::kYes, AfterScalars::kYes};
};
// Clip, AdamW on the owned ranges, zero the gradient shards. Not applied when anything was not finite.
struct OptimizerStep {
  static constexpr OperationTraits kTraits = {"optimizer_step", Lane::kCompute, InEvaluation::kNo, AfterScalars::kYes};
};

// Whoever visits it has a function for each alternative and none for the rest, so that a new one does not compile before all
// have said what they do with it.
using Operation = std::variant<Gather, Release, Forward, Recompute, Backward, ZeroGrad, ReduceScatter, SendActivation,
                               ReceiveActivation, SendGradient, ReceiveGradient, ReduceScalars, OptimizerStep>;

inline const OperationTraits& TraitsOf(const Operation& op) {
  return std::visit([](const auto& o) -> const OperationTraits& { return o.kTraits; }, op);
}
inline Lane LaneOf(const Operation& op) { return TraitsOf(op).lane; }
inline std::string_view OperationName(const Operation& op) { return TraitsOf(op).name; }

template <size_t... kIndices>
constexpr std::array<Operation, sizeof...(kIndices)> OneOfEach(std::index_sequence<kIndices...>) {
  return {std::variant_alternative_t<kIndices, Operation>{}...};
}
// One of each, with fields of 0, by the variant's index.
inline constexpr auto kEveryOperation = OneOfEach(std::make_index_sequence<std::variant_size_v<Operation>>());

}  // namespace motley
