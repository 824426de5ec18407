#include "planner/graph/program_seconds.h"

#include "common/model/layer_table.h"
#include "planner/memory/program_memory.h"

namespace motley::planner {
namespace {

double WholeSeconds(const Costs& costs, int kind, double tp_share, const ComputeWork& work, UnitKind unit, double samples) {
  switch (work.pass) {
    case TaskKind::kForward:
      return costs.ForwardSeconds(kind, unit, samples, tp_share);
    case TaskKind::kRecompute:
      return costs.RecomputeSeconds(kind, unit, OperatorSet(work.operators), samples, tp_share);
    case TaskKind::kBackward:
      return costs.BackwardSeconds(kind, unit, samples, tp_share);
    case TaskKind::kBackwardInput:
      return costs.BackwardInputSeconds(kind, unit, samples, tp_share);
    case TaskKind::kBackwardWeight:
      return costs.BackwardWeightSeconds(kind, unit, samples, tp_share);
    default:
      return 0;
  }
}

// The part of a layer's forward that attention is, with its norm and residual.
double AttentionPart(const Costs& costs, int kind) {
  double part = 0;
  for (const Costs::OperatorCost& op : costs.Operators(kind)) part += InAttention(op.op) ? op.forward_part : 0;
  return part;
}

}  // namespace

double ComputeSeconds(const Costs& costs, int kind, double tp_share, const ComputeWork& work, UnitKind unit, double samples) {
  const double whole = WholeSeconds(costs, kind, tp_share, work, unit, samples);
  switch (work.segment) {
    case UnitSegment::kWhole:
    case UnitSegment::kLogits:  // the loss of logits that are there takes next to nothing
      return whole;
    case UnitSegment::kAttention:
      return AttentionPart(costs, kind) * whole;
    case UnitSegment::kMlp:
      return (1 - AttentionPart(costs, kind)) * whole;
    case UnitSegment::kLoss:
      return 0;
  }
  return whole;
}

int SumsInside(const ComputeWork& work, UnitKind unit) {
  const bool layer = unit == UnitKind::kLayer;
  switch (work.pass) {
    case TaskKind::kForward:
      return layer ? 2 : unit == UnitKind::kEmbedding ? 1 : 0;
    case TaskKind::kRecompute: {
      const OpSet operators = OperatorSet(work.operators);
      return layer ? (operators.Has(Op::kAttnOut) ? 1 : 0) + (operators.Has(Op::kDown) ? 1 : 0) : 0;
    }
    case TaskKind::kBackward:
    case TaskKind::kBackwardInput:
      return layer ? 2 : unit == UnitKind::kHead ? 1 : 0;
    default:
      return 0;
  }
}

}  // namespace motley::planner
