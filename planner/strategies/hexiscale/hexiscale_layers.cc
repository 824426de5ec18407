#include "planner/strategies/hexiscale/hexiscale_layers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace motley::planner {
namespace {

constexpr double kSlack = 1e-12;  // relative: a bound made from l a + f must allow l layers

// Most layers within the bound; negative when not even the fixed part fits.
int64_t Within(const StageCost& stage, double bound) {
  const double room = bound * (1 + kSlack) - stage.fixed_seconds;
  if (room < 0) return -1;
  if (stage.layer_seconds <= 0) return stage.most_layers;
  return std::min(stage.most_layers, static_cast<int64_t>(std::min(room / stage.layer_seconds * (1 + kSlack), 1e15)));
}

bool Feasible(const std::vector<StageCost>& stages, int64_t layers, double bound) {
  int64_t sum = 0;
  for (const StageCost& stage : stages) {
    const int64_t most = Within(stage, bound);
    if (most < 1) return false;
    sum += most;
  }
  return sum >= layers;
}

}  // namespace

double PipelineSeconds(const std::vector<StageCost>& stages, const std::vector<int64_t>& layers, int64_t microbatches) {
  double sum = 0, slowest = 0;
  for (size_t j = 0; j < stages.size(); ++j) {
    const double seconds = static_cast<double>(layers[j]) * stages[j].layer_seconds + stages[j].fixed_seconds;
    sum += seconds;
    slowest = std::max(slowest, seconds);
  }
  return sum + static_cast<double>(microbatches - 1) * slowest;
}

namespace {

// The bounds that matter, l a + f of any stage, in ascending order from a start.
class Bounds {
 public:
  Bounds(const std::vector<StageCost>& stages, double start) : stages_(stages) {
    for (const StageCost& stage : stages) {
      const double l =
          stage.layer_seconds > 0 ? std::ceil((start - stage.fixed_seconds) / stage.layer_seconds * (1 - kSlack)) : 1;
      next_.push_back(std::max<int64_t>(1, static_cast<int64_t>(std::clamp(l, 1.0, 1e15))));
    }
  }
  // Infinite when there are no more.
  double Next() {
    double least = std::numeric_limits<double>::infinity();
    size_t of = 0;
    for (size_t j = 0; j < stages_.size(); ++j) {
      if (next_[j] > stages_[j].most_layers) continue;
      const double bound = static_cast<double>(next_[j]) * stages_[j].layer_seconds + stages_[j].fixed_seconds;
      if (bound < least) least = bound, of = j;
    }
    ++next_[of];
    return least;
  }

 private:
  const std::vector<StageCost>& stages_;
  std::vector<int64_t> next_;
};

// What no split comes below if layers could be cut anywhere and memory were plentiful. Less a little, for rounding.
double RelaxedBound(const std::vector<StageCost>& stages, int64_t layers) {
  double speed = 0, sum = static_cast<double>(layers);
  for (const StageCost& stage : stages) {
    if (stage.layer_seconds <= 0) return 0;
    speed += 1 / stage.layer_seconds;
    sum += stage.fixed_seconds / stage.layer_seconds;
  }
  return sum / speed * (1 - 1e-9);
}

// A bound at most the least feasible one and less than a layer of the fastest stage below it: few others lie between.
double LowestBound(const std::vector<StageCost>& stages, int64_t layers, double fastest) {
  double low = 0, high = 0;
  for (const StageCost& stage : stages) {
    low = std::max(low, stage.layer_seconds + stage.fixed_seconds);
    high = std::max(high, static_cast<double>(std::min(layers, stage.most_layers)) * stage.layer_seconds + stage.fixed_seconds);
  }
  if (Feasible(stages, layers, low)) return low;
  low = std::max(low, RelaxedBound(stages, layers));
  for (int step = 0; step < 40 && high - low > fastest; ++step) {
    const double middle = (low + high) / 2;
    if (Feasible(stages, layers, middle))
      high = middle;
    else
      low = middle;
  }
  return low;
}

}  // namespace

double LeastPipelineSeconds(const std::vector<StageCost>& stages, const std::vector<StageCost>& others, int64_t layers,
                            int64_t microbatches) {
  std::vector<StageCost> faster = stages;
  double fixed = 0, fastest = std::numeric_limits<double>::infinity(), one_layer = 0;
  for (size_t j = 0; j < faster.size(); ++j) {
    StageCost& stage = faster[j];
    stage.layer_seconds = std::min(stage.layer_seconds, others[j].layer_seconds);
    fixed += stage.fixed_seconds;
    fastest = std::min(fastest, stage.layer_seconds);
    one_layer = std::max(one_layer, stage.layer_seconds + stage.fixed_seconds);
  }
  const double slowest = std::max(one_layer, RelaxedBound(faster, layers));
  return fixed + static_cast<double>(layers) * fastest + static_cast<double>(microbatches - 1) * slowest;
}

LayerSplit SplitLayersExactly(const std::vector<StageCost>& stages, int64_t layers, int64_t microbatches) {
  LayerSplit best;
  best.seconds = std::numeric_limits<double>::infinity();
  int64_t most = 0;
  double fixed = 0, fastest = std::numeric_limits<double>::infinity();
  for (const StageCost& stage : stages) {
    if (stage.most_layers < 1) return best;
    most += std::min(stage.most_layers, layers);
    fixed += stage.fixed_seconds;
    fastest = std::min(fastest, stage.layer_seconds);
  }
  if (most < layers || static_cast<int64_t>(stages.size()) > layers) return best;

  std::vector<size_t> by_speed(stages.size());
  std::iota(by_speed.begin(), by_speed.end(), size_t{0});
  std::stable_sort(by_speed.begin(), by_speed.end(),
                   [&](size_t a, size_t b) { return stages[a].layer_seconds < stages[b].layer_seconds; });
  const double least_sum = fixed + static_cast<double>(layers) * fastest;
  std::vector<int64_t> split(stages.size());
  Bounds bounds(stages, LowestBound(stages, layers, fastest));
  double last = -1;
  for (double bound = bounds.Next(); std::isfinite(bound); bound = bounds.Next()) {
    if (least_sum + static_cast<double>(microbatches - 1) * bound >= best.seconds) break;
    if (bound == last || !Feasible(stages, layers, bound)) continue;
    last = bound;
    std::fill(split.begin(), split.end(), 1);
    int64_t left = layers - static_cast<int64_t>(stages.size());
    for (size_t j : by_speed) {
      const int64_t more = std::min(left, Within(stages[j], bound) - 1);
      split[j] += more;
      left -= more;
    }
    const double seconds = PipelineSeconds(stages, split, microbatches);
    if (seconds < best.seconds) best.seconds = seconds, best.layers = split;
  }
  return best;
}

}  // namespace motley::planner
