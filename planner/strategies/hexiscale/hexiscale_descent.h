// The last step of the tuned search: a whole layout improved in place. The phases before design each pipeline as if it were
// alone, so they do not see that layers in the same stages of all pipelines share rings (Comm-DP), that a node's stages may stand
// apart, or that a rest of a node's devices may come first.
//
// From the layout to its best neighbour that was not priced yet, also where that is worse, until a few in a row have brought
// nothing (tabu search: two pipelines whose layers must move together pass a worse layout between); priced by the whole objective
// (equation 10). Neighbours: a layer, a device or a microbatch elsewhere; two stages exchanged, in a pipeline or between two; a
// stage in two, two in one, two pipelines in one; another microbatch. With every change of stages both the layers as they were
// and those that suit the pipeline alone are tried. Deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "planner/strategies/hexiscale/hexiscale_pipeline.h"
#include "planner/strategies/hexiscale/hexiscale_problem.h"

namespace motley::planner {

class HexiscaleDescent {
 public:
  // `spend`: asked before each layout that is priced; false ends the descent. `pinned`: by device its stage or -1.
  HexiscaleDescent(HexiscaleProblem* problem, PipelineDesigner* designer, const std::vector<int>& pinned,
                   std::function<bool()> spend)
      : problem_(problem), designer_(designer), pinned_(pinned), spend_(std::move(spend)) {}

  // Seconds of the best layout found, which takes the place of `layout`. A layout that does not fit is priced by the layers that
  // lack memory, which leads out of it; infinite where it did not.
  double Run(HexiscaleLayout* layout);

 private:
  void TryLayers(const HexiscaleLayout& from);
  void TryMicrobatches(const HexiscaleLayout& from);
  void TryDevices(const HexiscaleLayout& from);
  void TryStages(const HexiscaleLayout& from);
  void TryDivisions(const HexiscaleLayout& from);
  void TryJoins(const HexiscaleLayout& from);
  void TryRefitted(HexiscaleLayout layout, size_t pipeline, size_t other);
  void Refit(HexiscalePipeline* pipeline, int replicas, int zero_stage);
  void Try(HexiscaleLayout layout);
  bool Possible(const HexiscaleLayout& layout) const;
  double Price(HexiscaleLayout* layout) const;
  int64_t Lacking(HexiscaleLayout* layout) const;

  HexiscaleProblem* problem_;
  PipelineDesigner* designer_;
  const std::vector<int>& pinned_;
  std::function<bool()> spend_;
  bool stopped_ = false;
  double round_seconds_ = 0;  // of the best neighbour so far
  HexiscaleLayout round_;
  std::set<std::vector<int64_t>> priced_;
  std::map<std::vector<int64_t>, std::vector<HexiscaleStage>> suitable_;  // stages by devices and batch; none: nothing suits
  std::set<std::vector<int64_t>> refitted_;                               // with the pipelines that changed
};

}  // namespace motley::planner
