#include "coordinator/state/measured_speed.h"

#include <algorithm>

#include "common/operators.h"

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

}  // namespace

MeasuredSpeed SpeedOf(const ComputeProfile& profile, const ModelShape& shape, int64_t seq_len) {
  const auto layers = static_cast<double>(shape.num_layers);
  const double seconds =
      SecondsPerSample(profile.embedding) + layers * SecondsPerSample(profile.layer) + SecondsPerSample(profile.head);
  if (seconds <= 0) return {};
  auto flops = [&](UnitKind unit) { return ForwardFlops(shape, unit, 1, seq_len) + BackwardFlops(shape, unit, 1, seq_len); };
  return {static_cast<double>(seq_len) / seconds,
          (flops(UnitKind::kEmbedding) + layers * flops(UnitKind::kLayer) + flops(UnitKind::kHead)) / seconds};
}

}  // namespace motley::coordinator
