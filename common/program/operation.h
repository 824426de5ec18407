// The operations of a program: for each a struct with exactly its fields, and in it a row of traits. What they mean:
// docs/inside/program.md, with what else a new one needs. Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "common/program/operation_traits.h"

namespace motley {

// Where an operation has `more_units`, it is of units `unit` to `unit + more_units`, and with `more_microbatches` of microbatches
// `microbatch` to `microbatch + more_microbatches`: unit by unit, in each microbatch by microbatch. The text writes "1-5".

// The group's ranks together: assemble unit's parameters, each rank giving the range it owns, into parameter buffer `buffer`.
struct Gather {
  static constexpr OperationTraits kTraits = {"gather", Lane::kCollective, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t buffer;
  int32_t group;
  int32_t more_units = 0;
  ArrayRange elements;
};
// From `root`, which has the unit's whole parameters, into parameter buffer `buffer` of each of the group's ranks.
struct Broadcast {
  static constexpr OperationTraits kTraits = {"broadcast", Lane::kCollective, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t buffer;
  int32_t group;
  int32_t root;
  int32_t more_units = 0;
};
// The parameter buffer may be reused. Frees nothing: buffers are declared by the program. Runs where the parameters were last
// used, so that program order alone puts it after its uses.
struct Release {
  static constexpr OperationTraits kTraits = {"release", Lane::kCompute, InEvaluation::kYes, AfterScalars::kYes};
  int32_t buffer;
};
// Needs the unit's parameters gathered in `buffer`. A tied head also needs the embedding in `tied_buffer` (else -1). With
// Keep::kBoundary of `operators` nothing is kept (a bit for each Op of common/model/operators.h; 0: of all). `tp_group` (else
// -1): whole units run by the group's ranks together, each its share of the heads and columns, with the sums in between. A whole
// head's computes nothing in training: its backward, or the first part of one, makes the loss.
struct Forward {
  static constexpr OperationTraits kTraits = {"forward", Lane::kCompute, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
  Keep keep;
  int32_t more_units = 0;
  int32_t more_microbatches = 0;
  UnitSegment segment = UnitSegment::kWhole;
  uint32_t operators = 0;
  int32_t tp_group = -1;
};
// Runs what the forward did not keep again from its boundary, keeping all. Only after a Forward with Keep::kBoundary, with the
// same `operators`.
struct Recompute {
  static constexpr OperationTraits kTraits = {"recompute", Lane::kCompute, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
  int32_t more_units = 0;
  int32_t more_microbatches = 0;
  UnitSegment segment = UnitSegment::kWhole;
  uint32_t operators = 0;
  int32_t tp_group = -1;
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
  int32_t more_units = 0;
  int32_t more_microbatches = 0;
  UnitSegment segment = UnitSegment::kWhole;
  int32_t tp_group = -1;
};
// The two parts of a Backward (Zero Bubble's B and W). The gradient with respect to the input, for the unit before.
struct BackwardInput {
  static constexpr OperationTraits kTraits = {"backward_input", Lane::kCompute, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t buffer;
  int32_t tied_buffer;
  int32_t more_units = 0;
  int32_t more_microbatches = 0;
  UnitSegment segment = UnitSegment::kWhole;
  int32_t tp_group = -1;
};
// The gradients with respect to the weights, some time after the first part. Needs no parameters.
struct BackwardWeight {
  static constexpr OperationTraits kTraits = {"backward_weight", Lane::kCompute, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t grad;
  int32_t tied_grad;
  int32_t more_units = 0;
  int32_t more_microbatches = 0;
  UnitSegment segment = UnitSegment::kWhole;
};
// Zeroes gradient buffer `grad`: a rank without samples still contributes to the sum.
struct ZeroGrad {
  static constexpr OperationTraits kTraits = {"zero_grad", Lane::kCompute, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t grad;
  int32_t more_units = 0;
};
// The group's ranks together: sum the gradient buffers; each owner adds the sum of its range to its gradient shard. In a home
// buffer the sum stays where it is: the shard is that range.
struct ReduceScatter {
  static constexpr OperationTraits kTraits = {"reduce_scatter", Lane::kCollective, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t grad;
  int32_t group;
  int32_t more_units = 0;
  ArrayRange elements;
};
// The same, but each rank of the group has the whole sum: each is an owner of all, and adds it to its gradient shard.
struct AllReduce {
  static constexpr OperationTraits kTraits = {"all_reduce", Lane::kCollective, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t grad;
  int32_t group;
  int32_t more_units = 0;
  ArrayRange elements;
};
// The ranks of a tensor-parallel group sum what each has of a microbatch, behind a unit or segment that names no `tp_group`.
struct AllReduceActivation {
  static constexpr OperationTraits kTraits = {"all_reduce_activation", Lane::kCollective, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  Exchanged of;
  int32_t group;
  UnitSegment segment = UnitSegment::kWhole;
};
// From `root`, which received it, to the group's other ranks: a microbatch's input of `unit`, or the gradient with respect to it.
struct BroadcastActivation {
  static constexpr OperationTraits kTraits = {"broadcast_activation", Lane::kCollective, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  Exchanged of;
  int32_t group;
  int32_t root;
};
// To `peer`, which receives with the same fields but its own microbatch: samples [first, first + samples) of the global
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
// A unit's input, which its forward has used and its backward needs, to host memory.
struct OffloadActivation {
  static constexpr OperationTraits kTraits = {"offload_activation", Lane::kCopy, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t more_units = 0;
  int32_t more_microbatches = 0;
};
// And back, into the device's slot, where its backward finds it.
struct PrefetchActivation {
  static constexpr OperationTraits kTraits = {"prefetch_activation", Lane::kCopy, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t microbatch;
  int32_t slot;
  int32_t more_units = 0;
  int32_t more_microbatches = 0;
};
// What the rank owns of a unit's parameters, which wait in host memory between their uses, into its place in parameter buffer
// `buffer`, before the gather of the others'.
struct PrefetchParameters {
  static constexpr OperationTraits kTraits = {"prefetch_parameters", Lane::kCopy, InEvaluation::kYes, AfterScalars::kNo};
  int32_t unit;
  int32_t buffer;
  int32_t more_units = 0;
};
// What the rank owns of a unit's summed gradients, out of gradient buffer `grad`, which is free then.
struct OffloadGradients {
  static constexpr OperationTraits kTraits = {"offload_gradients", Lane::kCopy, InEvaluation::kNo, AfterScalars::kNo};
  int32_t unit;
  int32_t grad;
  int32_t more_units = 0;
};
// For the step of a unit: of gradient, parameter and moments what waits in host memory, into the device's slot.
struct PrefetchOptimizer {
  static constexpr OperationTraits kTraits = {"prefetch_optimizer", Lane::kCopy, InEvaluation::kNo, AfterScalars::kYes};
  int32_t unit;
  int32_t slot;
  int32_t more_units = 0;
};
// And back what was stepped: parameter and moments.
struct OffloadOptimizer {
  static constexpr OperationTraits kTraits = {"offload_optimizer", Lane::kCopy, InEvaluation::kNo, AfterScalars::kYes};
  int32_t unit;
  int32_t slot;
  int32_t more_units = 0;
};
// All ranks together: sum of loss, valid tokens, squared gradient norm (float64), stop flag; finds non-finite values. A second
// one is refused for being one, not for where it stands.
struct ReduceScalars {
  static constexpr OperationTraits kTraits = {"reduce_scalars", Lane::kCollective, InEvaluation::kYes, AfterScalars::kYes};
};
// Clip, AdamW on the owned ranges, zero the gradient shards. Not applied when anything was not finite. Of all units (first_unit
// -1), or of some: then one before ReduceScalars neither clips nor knows what was finite. `slot` (else -1): where what waits in
// host memory was brought to. `grad` (else -1), before ReduceScalars: the sum is taken from this buffer, which is free then.
struct OptimizerStep {
  static constexpr OperationTraits kTraits = {"optimizer_step", Lane::kCompute, InEvaluation::kNo, AfterScalars::kYes};
  int32_t first_unit = -1;
  int32_t more_units = 0;
  int32_t slot = -1;
  int32_t grad = -1;
};

// Whoever visits it has a function for each alternative and none for the rest, so that a new one does not compile before all
// have said what they do with it.
using Operation =
    std::variant<Gather, Broadcast, Release, Forward, Recompute, Backward, BackwardInput, BackwardWeight, ZeroGrad, ReduceScatter,
                 AllReduce, AllReduceActivation, BroadcastActivation, SendActivation, ReceiveActivation, SendGradient,
                 ReceiveGradient, OffloadActivation, PrefetchActivation, PrefetchParameters, OffloadGradients, PrefetchOptimizer,
                 OffloadOptimizer, ReduceScalars, OptimizerStep>;

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
