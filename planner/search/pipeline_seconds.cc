#include "planner/search/pipeline_seconds.h"

#include <algorithm>

namespace motley::planner {

double PipelineSeconds(const PipelineLoad& load) {
  const size_t stages = load.stage_seconds.size();
  const double v = static_cast<double>(load.ministages), m = static_cast<double>(load.microbatches);
  const double step = load.ministages > 1 ? 2 : 1;
  double slowest = 0, sum = 0, sends = 0;
  for (const double seconds : load.stage_seconds) {
    slowest = std::max(slowest, seconds);
    sum += seconds;
  }
  for (const double seconds : load.send_seconds) sends += 2 * seconds;

  double period = std::max(slowest, load.link_seconds);
  for (size_t i = 0; i < stages; ++i) {
    double way = load.stage_seconds[i], in_flight = 1;
    for (size_t j = i + 1; j < stages; ++j) {
      in_flight += step;
      if (in_flight >= m * v) break;  // all are in flight: nobody waits
      way += load.stage_seconds[j] + 2 * v * load.send_seconds[j - 1];
      period = std::max(period, way / in_flight);
    }
  }
  return (m - 1) * period + slowest + (sum - slowest) / v + sends;
}

}  // namespace motley::planner
