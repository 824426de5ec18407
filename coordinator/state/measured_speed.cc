#include "coordinator/state/measured_speed.h"

#include "common/model/operators.h"

namespace motley::coordinator {
namespace {

// Of both passes, as a step runs them: a whole head's forward is within its backward, and what was measured is an evaluation's.
double SecondsPerSample(const UnitProfile& unit, UnitKind kind) {
  double best = 0;
  for (const ComputePoint& point : unit.points) {
    if (point.microbatch <= 0) continue;
    const double forward = TrainsInBackward(kind) ? 0 : point.forward_seconds;
    const double seconds = (forward + point.backward_seconds) / static_cast<double>(point.microbatch);
    if (best == 0 || seconds < best) best = seconds;
  }
  return best;
}

// Forward and backward of the whole model.
double FlopsOf(const ModelShape& shape, int64_t samples, int64_t seq_len) {
  const auto of = [&](UnitKind unit) {
    const double forward = TrainsInBackward(unit) ? 0 : ForwardFlops(shape, unit, samples, seq_len);
    return forward + BackwardFlops(shape, unit, samples, seq_len);
  };
  return of(UnitKind::kEmbedding) + static_cast<double>(shape.num_layers) * of(UnitKind::kLayer) + of(UnitKind::kHead);
}

}  // namespace

MeasuredSpeed SpeedOf(const ComputeProfile& profile, const ModelShape& shape, int64_t seq_len) {
  const auto layers = static_cast<double>(shape.num_layers);
  const double seconds = SecondsPerSample(profile.embedding, UnitKind::kEmbedding) +
                         layers * SecondsPerSample(profile.layer, UnitKind::kLayer) +
                         SecondsPerSample(profile.head, UnitKind::kHead);
  MeasuredSpeed speed = {.attention = profile.attention,
                         .load = profile.load,
                         .cut_short = profile.cut_short,
                         .usable_bytes = profile.usable_bytes,
                         .memory_corrections = profile.memory_corrections,
                         .probed_samples = LargestThatRan(profile.trials)};
  if (seconds <= 0) return speed;
  speed.tokens_per_second = static_cast<double>(seq_len) / seconds;
  speed.flops_per_second = FlopsOf(shape, 1, seq_len) / seconds;
  return speed;
}

}  // namespace motley::coordinator
