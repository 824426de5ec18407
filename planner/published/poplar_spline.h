// Poplar's speed curve of a device (algorithm 1): through the batches that were run when its memory was probed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace motley::planner {

// Seconds of a microbatch of 0..largest samples from those at the probed batches, ascending: the paper's spline. Without any:
// empty. Deviation: through seconds and not through speeds, and monotone (PCHIP): seconds never fall over the batch, so the curve
// has no peaks between the points that nobody measured.
std::vector<double> SecondsBySpline(const std::vector<int64_t>& probed, const std::function<double(int64_t)>& seconds);

}  // namespace motley::planner
