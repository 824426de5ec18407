#include "worker/engine/profiler/rough_points.h"

#include <algorithm>

#include "worker/engine/profiler/point_seconds.h"

namespace motley::engine {
namespace {

// Caches that a size no longer fits into, and ordinary noise.
constexpr double kFasterThanSamples = 1.2, kFalls = 0.95;

}  // namespace

std::set<size_t> RoughPoints(const std::vector<ComputePoint>& points) {
  std::set<size_t> rough;
  for (size_t i = 1; i < points.size(); ++i) {
    const double samples = static_cast<double>(points[i].microbatch) / static_cast<double>(points[i - 1].microbatch);
    for (double ComputePoint::*seconds : kSecondsOfPoint) {
      const double before = points[i - 1].*seconds, after = points[i].*seconds;
      if (before <= 0 || after <= 0) continue;  // not measured
      if (after < kFalls * before) rough.insert(i - 1);
      if (after > kFasterThanSamples * samples * before) rough.insert(i);
    }
  }
  return rough;
}

ComputePoint Fastest(ComputePoint a, const ComputePoint& b) {
  for (double ComputePoint::*seconds : kSecondsOfPoint) {
    if (b.*seconds > 0) a.*seconds = std::min(a.*seconds, b.*seconds);
  }
  return a;
}

}  // namespace motley::engine
