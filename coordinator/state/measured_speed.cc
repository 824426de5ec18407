#include "coordinator/state/measured_speed.h"

#include "common/model/operators.h"

namespace motley::coordinator {
namespace {

double SecondsPerSample(const UnitProfile& unit) {
  double best = 0;
  for (const ComputePoint& point : unit.points) {
    if (point.microbatch <= 0) continue;
    const double seconds = (point.forward_seconds + point.backward_seconds) / static_cast<double>(point.microbatch);
    if (best == 0 || seconds < best) best = seconds;
  }
  return best;
}

// Forward and backward of the whole model.
double FlopsOf(const ModelShape& shape, int64_t samples, int64_t seq_len) {
  const auto of = [&](UnitKind unit) {
    return ForwardFlops(shape, unit, samples, seq_len) + BackwardFlops(shape, unit, samples, seq_len);
  };
  return of(UnitKind::kEmbedding) + static_cast<double>(shape.num_layers) * of(UnitKind::kLayer) + of(UnitKind::kHead);
}

}  // namespace

MeasuredSpeed SpeedOf(const ComputeProfile& profile, const ModelShape& shape, int64_t seq_len) {
  const auto layers = static_cast<double>(shape.num_layers);
  const double seconds =
      SecondsPerSample(profile.embedding) + layers * SecondsPerSample(profile.layer) + SecondsPerSample(profile.head);
  MeasuredSpeed speed = {.load = profile.load,
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
