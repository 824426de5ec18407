// HexiScale's iterative optimisation (arXiv 2409.01143 section 4.4): layouts from partitions, batches between pipelines by their
// speed, and (tuned) local moves of devices between pipelines; on small clusters then the descent of whole layouts
// (hexiscale_descent.h). Prices are of hexiscale_problem.h. Not thread-safe: it remembers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "planner/groups/split_cut.h"
#include "planner/published/hexiscale_limits.h"
#include "planner/strategies/hexiscale/hexiscale_partition.h"
#include "planner/strategies/hexiscale/hexiscale_pipeline.h"
#include "planner/strategies/hexiscale/hexiscale_problem.h"

namespace motley::planner {

struct PricedLayout {
  double seconds = 0;
  HexiscaleLayout layout;
};

class HexiscaleSearch {
 public:
  // INVALID_ARGUMENT: pins that are not "stageN".
  static absl::StatusOr<HexiscaleSearch> Create(const Setting& setting, HexiscaleProblem* problem, const HexiscaleLimits& limits);

  // The best layouts by the stated objective, fastest first, at most `most`. RESOURCE_EXHAUSTED: none fits; names a device and
  // the bytes it lacks. INVALID_ARGUMENT: none obeys the pins.
  absl::StatusOr<std::vector<PricedLayout>> Run(const PipelinePartitions& partitions, size_t most);
  bool stopped_by_clock() const { return stopped_by_clock_; }

 private:
  HexiscaleSearch(const Setting& setting, HexiscaleProblem* problem, std::vector<int> pinned, const HexiscaleLimits& limits);

  void TryPartition(const Parts& parts, int zero_stage);
  // Infinite seconds: a pipeline of it does not fit.
  PricedLayout Build(const Parts& parts, int zero_stage);
  bool DistributeBatches(HexiscaleLayout* layout);
  void Improve(PricedLayout start);
  void Descend();
  HexiscaleLayout ByPart(const Parts& parts, int zero_stage, bool whole) const;
  std::vector<Parts> Neighbours(const HexiscaleLayout& layout);
  void Remember(PricedLayout layout);
  bool Stop();
  absl::Status DoesNotFit() const;

  const Setting& setting_;
  HexiscaleProblem* problem_;
  HexiscaleLimits limits_;
  std::vector<double> speeds_;  // by device: layers a second
  PipelineDesigner designer_;
  std::vector<PricedLayout> best_;  // ascending
  struct Start {                    // of a descent
    double seconds = 0;             // infinite: the layout is empty
    Parts parts;
    HexiscaleLayout layout;
  };
  std::vector<Start> starts_;
  size_t most_ = 1;
  int64_t nodes_ = 0;
  absl::Time deadline_ = absl::InfiniteFuture();
  bool stopped_by_clock_ = false;
};

}  // namespace motley::planner
