// The compute lane: the optimizer, on what the rank owns, wherever it lies.
#include <ATen/ATen.h>

#include <algorithm>
#include <span>
#include <vector>

#include "worker/engine/base/scalar_type.h"
#include "worker/engine/executor_pass.h"
#include "worker/engine/model/optimizer.h"

namespace motley::engine {

at::Tensor Executor::Pass::InSlot(int32_t slot, const RangeState& own, int64_t part, DType type) const {
  const int64_t size = SizeOfBytes(type);
  return e_.slots_[static_cast<size_t>(slot)].narrow(0, part + own.in_area * size, own.size() * size).view(ScalarTypeOf(type));
}

Executor::Pass::Stepped Executor::Pass::SteppedBy(const OptimizerStep& op, RangeState& own) const {
  const OffloadKinds& waits = program_.offloads;
  const HostState& layout = e_.host_tier_.areas().LayoutOf(own.block);
  const DType master = e_.precision_.master;
  Stepped range{own.parameter, own.exp_avg, own.exp_avg_sq, {}, own.gradient, {{0, 0, own.size()}}};
  range.is_shard = op.grad < 0 && !waits.gradients;
  if (waits.parameters) range.parameter = InSlot(op.slot, own, layout.ParameterAt(), master);
  if (waits.optimizer) {
    range.exp_avg = InSlot(op.slot, own, layout.MomentAt(0), master);
    range.exp_avg_sq = InSlot(op.slot, own, layout.MomentAt(1), master);
  }
  if (layout.cast > 0) range.cast = InSlot(op.slot, own, layout.CastAt(), e_.precision_.compute);
  // A kernel writes it beside the parameter; without kernels it would be a pass here as it is one in the gather.
  if (!waits.parameters && e_.backend_.kernels() != nullptr) {
    range.cast = InHome(own);
    range.casts_home = range.cast.defined();
  }
  if (op.grad >= 0) {
    range.sum = e_.gradient_buffers_[static_cast<size_t>(op.grad)].flat();
    range.pieces = e_.arrays_.In(program_.gradient_buffers[static_cast<size_t>(op.grad)]).PiecesOf(own.block, own.begin, own.end);
  } else if (waits.gradients) {
    range.sum = InSlot(op.slot, own, 0, master);
  }
  return range;
}

at::Tensor Executor::Pass::InHome(const RangeState& own) const {
  const std::vector<UnitBuffer>& buffers = program_.parameter_buffers;
  const auto home = std::find_if(buffers.begin(), buffers.end(), [&own](const UnitBuffer& b) { return b.IsHomeOf(own.block); });
  if (!e_.precision_.mixed() || home == buffers.end()) return {};
  const std::vector<LocalPiece> pieces = e_.arrays_.In(*home).PiecesOf(own.block, own.begin, own.end);
  if (pieces.size() != 1 || pieces[0].elements != own.size()) return {};
  return e_.parameter_buffers_[static_cast<size_t>(home - buffers.begin())].flat().narrow(0, pieces[0].in_array, own.size());
}

void Executor::Pass::Step(Stepped& range, const RangeState& own, double clip) {
  const OptimizerSection& options = assignment().config.optimizer;
  OptimizerSection without_decay = options;
  without_decay.weight_decay = 0;
  const int64_t update = input_.step - input_.skipped + 1;
  for (const DecayRun& run : own.decay_runs) {
    for (const LocalPiece& piece : range.pieces) {
      const int64_t begin = std::max(run.begin, piece.in_range), end = std::min(run.end, piece.in_range + piece.elements);
      if (begin >= end) continue;
      const auto of = [begin, end](const at::Tensor& all) { return all.narrow(0, begin, end - begin); };
      const AdamWRange part = {.gradient = range.sum.narrow(0, piece.in_array + begin - piece.in_range, end - begin),
                               .parameter = of(range.parameter),
                               .exp_avg = of(range.exp_avg),
                               .exp_avg_sq = of(range.exp_avg_sq),
                               .cast = range.cast.defined() ? of(range.cast) : at::Tensor(),
                               .zeroes_gradient = range.is_shard};
      AdamWStep(run.decayed ? options : without_decay, input_.lr, update, clip, part, e_.backend_.kernels());
    }
  }
}

absl::Status Executor::Pass::Do(const OptimizerStep& op) {
  // One in turn is not ordered behind the scalars, which the collective lane writes.
  const bool in_turn = op.first_unit >= 0 && in_turn_[static_cast<size_t>(op.first_unit)];
  const bool applies = in_turn || (outcome_.overflow.empty() && !outcome_.is_void);
  const double norm_clip = in_turn ? 1 : ClipCoefficient(outcome_.scalars.norm(), assignment().config.training.max_norm);
  const std::span<RangeState> ranges = op.first_unit < 0 ? std::span(e_.state_.ranges()) : e_.state_.Of(op.first_unit);
  for (const RangeState& own : ranges) e_.cast_in_home_[static_cast<size_t>(own.block)] = 1;
  for (RangeState& own : ranges) {
    Stepped range = SteppedBy(op, own);
    if (!range.casts_home) e_.cast_in_home_[static_cast<size_t>(own.block)] = 0;
    if (applies) {
      Step(range, own, norm_clip / input_.loss_scale);
      continue;
    }
    // Of a step that is skipped, too: it goes back to the host, and a slot's last unit has left another's there.
    if (range.cast.defined()) range.cast.copy_(range.parameter);
    if (range.is_shard) own.gradient.zero_();
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
