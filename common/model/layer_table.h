// A layer is a table of operators: which tensors each reads and makes, forward and in the two halves of its backward. The one
// description of a layer: costs, saved bytes and what recomputing frees are counted from it (operators.h), the engine walks it
// (worker/engine/model/layer_walk.h). docs/inside/operators.md has the table.
//
//   x1 = x + out(attention(rotary(qkv(norm1(x))))),  y = x1 + down(activation(up(norm2(x1))))
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

// A family's operators, in execution order. The table is static.
std::span<const LayerOperator> LayerOperatorsOf(const FamilyTraits& traits);

// Values that stay from forward to backward when nothing is recomputed: what some half of a backward reads. With the input.
ValueSet KeptValues();
// Of those the ones that the operators of the set make: what recomputing frees. An operator that changes a tensor in place makes
// it only together with the one before it, so alone it frees nothing.
ValueSet MadeBy(OpSet operators);
// Operators that run again so that what is missing of MadeBy(operators) is there: all that write it. Of All() all.
OpSet RunAgainFor(OpSet operators);
// What a tensor-parallel rank recomputes of a set: not what makes the sums of its segments, which takes the whole group. So the
// sum between the segments is kept in any case; the sum behind them nobody needs again.
OpSet WithoutSums(OpSet operators);
// What the halves of a backward hand over when weights wait: values of the forward, and gradients of values.
ValueSet WaitingValues();
ValueSet WaitingGradients();

// Operators that must run again so that what those of `ops` make exists in the backward pass: with each all that write the same
// kept tensor. The projection of the queries is kept after rotation; a residual's sum needs the product before it.
OpSet RecomputedWith(OpSet ops);

// Whether a tensor-parallel rank has only its share of the value's columns.
bool IsDivided(LayerValue value);

}  // namespace motley
