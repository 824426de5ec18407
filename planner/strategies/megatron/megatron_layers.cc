// Method: a bound T on the slowest stage gives every stage a largest number of layers, so the least T that places all layers is
// found
//         from below: T0, the time if layers could be cut, is such a bound; floor its counts, then give the rest one by one to
//         the stage that would then take least. Both steps keep every count at or under that of an optimum.
#include "planner/strategies/megatron/megatron_layers.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace motley::planner {

std::vector<int64_t> BalanceLayers(const std::vector<StageSpeed>& stages, int64_t layers) {
  int64_t least = 0, most = 0;
  double speed = 0, ahead = 0;
  for (const StageSpeed& stage : stages) {
    if (stage.most_layers < stage.least_layers) return {};
    least += stage.least_layers;
    most += stage.most_layers;
    speed += 1 / stage.seconds_per_layer;
    ahead += stage.extra_seconds / stage.seconds_per_layer;
  }
  if (least > layers || most < layers) return {};
  const double bound = (static_cast<double>(layers) + ahead) / speed;

  std::vector<int64_t> counts;
  int64_t rest = layers;
  for (const StageSpeed& stage : stages) {
    const double fits = std::floor((bound - stage.extra_seconds) / stage.seconds_per_layer);
    const double limited = std::clamp(fits, static_cast<double>(stage.least_layers), static_cast<double>(stage.most_layers));
    counts.push_back(static_cast<int64_t>(limited));
    rest -= counts.back();
  }
  const auto seconds = [&](size_t s, int64_t count) {
    return stages[s].extra_seconds + static_cast<double>(count) * stages[s].seconds_per_layer;
  };
  // Limits from below may have given out too many: the slowest stage that may gives one back.
  for (; rest < 0; ++rest) {
    size_t slowest = stages.size();
    for (size_t s = 0; s < stages.size(); ++s) {
      if (counts[s] <= stages[s].least_layers) continue;
      if (slowest == stages.size() || seconds(s, counts[s]) > seconds(slowest, counts[slowest])) slowest = s;
    }
    --counts[slowest];  // exists: the least counts add up to at most `layers`
  }
  using Next = std::pair<double, size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  for (size_t s = 0; s < stages.size(); ++s) {
    if (counts[s] < stages[s].most_layers) next.emplace(seconds(s, counts[s] + 1), s);
  }
  for (; rest > 0; --rest) {
    const size_t s = next.top().second;
    next.pop();
    if (++counts[s] < stages[s].most_layers) next.emplace(seconds(s, counts[s] + 1), s);
  }
  return counts;
}

}  // namespace motley::planner
