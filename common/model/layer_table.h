// A layer is a table of operators: which tensors each reads and makes, forward and in the two halves of its backward. The one
// description of a layer: costs, saved bytes and what recomputing frees are counted from it (operators.h), the engine walks it
// (worker/engine/model/layer_walk.h). docs/inside/operators.md has the table.
//
//   x1 = x + out(attention(rotary(head_norm(qkv(norm1(x)))))),  y = x1 + down(activation(up(norm2(x1))))
//
// Where norms come behind:  x1 = x + norm1(out(...qkv(x))),  y = x1 + norm2(down(activation(up(x1))))
// Where they come before and behind:  x1 = x + behind1(out(...qkv(norm1(x)))),  y = x1 + behind2(down(...up(norm2(x1))))
#pragma once

#include <span>

#include "common/model/layer_values.h"
#include "common/model/model_family.h"
#include "common/model/op.h"
#include "common/model/op_set.h"

namespace motley {

// One operator. Both halves of its backward read the gradients of what it makes, or of its weights those of weight_gradients.
struct LayerOperator {
  Op op;
  bool in_attention;      // of a layer's two segments the first, else the MLP's
  bool divided;           // by tensor parallelism: products and what stands between them; norms and residuals are not
  ValueSet reads, makes;  // forward; what is in both it changes in place
  ValueSet input_reads;   // values that the gradients of what it reads need
  // What the gradients of its weights need: values, and gradients. None: it has no weights.
  ValueSet weight_reads, weight_gradients;

  constexpr bool has_weights() const { return !weight_gradients.empty(); }
  // A norm's backward by input makes the gradients of its weights in passing; the other half adds them to the unit's.
  constexpr bool weights_with_input() const { return has_weights() && !makes.Meets(weight_gradients); }
  // What its backward by input leaves.
  constexpr ValueSet made_gradients() const { return reads | weight_gradients.Without(makes); }
};

// A family's operators, in execution order; those of its layers that have no rotary positions (model.h, LayerKind). The table is
// static.
std::span<const LayerOperator> LayerOperatorsOf(const FamilyTraits& traits, bool rotary = true);

// Of an operator of a layer.
bool InAttention(Op op);
// In the order of their rows, of whichever family.
std::span<const Op> AllLayerOps();

// Values that stay from forward to backward when nothing is recomputed: what some half of a backward reads. With the input.
// Of any family: those that it does not have are never there.
ValueSet KeptValues();
// Of those the ones that the operators of the set make: what recomputing frees. An operator that changes a tensor in place makes
// it only together with the one before it, so alone it frees nothing.
ValueSet MadeBy(OpSet operators, const FamilyTraits& traits);
// Operators that run again so that what is missing of MadeBy(operators) is there: all that write it, and with one that changes a
// tensor in place all that write that tensor, since what it read is there no more. Of All() all.
OpSet RunAgainFor(OpSet operators, const FamilyTraits& traits);
// What a tensor-parallel rank recomputes of a set: not what makes the sums of its segments, which takes the whole group. So the
// sum between the segments is kept in any case; the sum behind them nobody needs again.
OpSet WithoutSums(OpSet operators, const FamilyTraits& traits);
// What the halves of a backward hand over when weights wait: values of the forward, and gradients of values.
ValueSet WaitingValues(std::span<const LayerOperator> rows);
ValueSet WaitingGradients(std::span<const LayerOperator> rows);

// Operators that must run again so that what those of `ops` make exists in the backward pass: with each all that write the same
// kept tensor. The projection of the queries is kept after rotation; a residual's sum needs the product before it.
OpSet RecomputedWith(OpSet ops, const FamilyTraits& traits);

// Whether a tensor-parallel rank has only its share of the value's columns.
bool IsDivided(LayerValue value);

}  // namespace motley
