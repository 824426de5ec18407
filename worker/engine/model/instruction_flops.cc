#include "worker/engine/model/instruction_flops.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "common/model/layer_table.h"
#include "common/program/segment_operators.h"

namespace motley::engine {
namespace {

UnitKind UnitKindIn(const Program& program, int32_t unit) {
  if (unit == 0) return UnitKind::kEmbedding;
  return unit == program.num_units - 1 ? UnitKind::kHead : UnitKind::kLayer;
}

}  // namespace

std::optional<double> InstructionFlops::Of(const Operation& op) const {
  return std::visit([this](const auto& o) { return Flops(o); }, op);
}

template <typename Op>
double InstructionFlops::Sum(const Op& op, double OpCost::*part, OpSet of) const {
  const int64_t samples = program_.microbatches[op.microbatch].samples;
  double flops = 0;
  for (const OpCost& cost : UnitOperators(model_, UnitKindIn(program_, op.unit), samples, seq_len_, DType::kFloat32)) {
    if (of.Has(cost.op) && RunsIn(op.segment, cost.op)) flops += cost.*part;
  }
  return flops;
}

bool InstructionFlops::IsWholeHead(int32_t unit) const { return whole_ && TrainsInBackward(UnitKindIn(program_, unit)); }

std::optional<double> InstructionFlops::Flops(const Forward& op) const {
  if (op.keep != Keep::kNothing && op.segment == UnitSegment::kWhole && IsWholeHead(op.unit)) return std::nullopt;
  return Sum(op, &OpCost::forward_flops);
}

std::optional<double> InstructionFlops::Flops(const Recompute& op) const {
  const OpSet operators = OpSet::OfProgram(op.operators);
  const FamilyTraits& traits = TraitsOf(model_.family);
  if (IsWholeHead(op.unit)) return std::nullopt;
  if (whole_) return Sum(op, &OpCost::forward_flops, RunAgainFor(operators, traits));
  // Of the head the norm alone: what the loss makes is kept, since it takes the group.
  const bool head = UnitKindIn(program_, op.unit) == UnitKind::kHead;
  return Sum(op, &OpCost::forward_flops,
             head ? OpSet().With(Op::kFinalNorm) : RunAgainFor(WithoutSums(operators, traits), traits));
}

std::optional<double> InstructionFlops::Flops(const Backward& op) const {
  return Sum(op, &OpCost::backward_input_flops) + Sum(op, &OpCost::backward_weight_flops);
}

std::optional<double> InstructionFlops::Flops(const BackwardInput& op) const { return Sum(op, &OpCost::backward_input_flops); }

std::optional<double> InstructionFlops::Flops(const BackwardWeight& op) const { return Sum(op, &OpCost::backward_weight_flops); }

std::optional<double> InstructionFlops::Flops(const OptimizerStep& op) const {
  const auto first = owned_elements_.begin() + std::max(0, op.first_unit);
  const auto end = op.first_unit < 0 ? owned_elements_.end() : first + op.more_units + 1;
  return kOptimizerFlopsPerElement * static_cast<double>(std::accumulate(first, end, int64_t{0}));
}

}  // namespace motley::engine
