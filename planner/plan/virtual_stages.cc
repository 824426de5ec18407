#include "planner/plan/virtual_stages.h"

#include <algorithm>
#include <functional>

namespace motley::planner {
namespace {

// The stage with the ministage whose first layer is before (or behind) that of all others.
template <typename Precedes>
size_t StageOfExtreme(const PipelinePlan& pipeline, Precedes precedes) {
  size_t holder = 0;
  const LayerRange* extreme = nullptr;
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    for (const LayerRange& range : pipeline.stages[s].ministages) {
      if (extreme != nullptr && !precedes(range.first, extreme->first)) continue;
      extreme = &range;
      holder = s;
    }
  }
  return holder;
}

}  // namespace

std::vector<VirtualStage> VirtualStagesOf(const PipelinePlan& pipeline) {
  size_t most = 0;
  for (const StagePlan& stage : pipeline.stages) most = std::max(most, stage.ministages.size());
  std::vector<VirtualStage> order;
  for (const VirtualStage& v : MappedStages(VirtualStageMap::kRoundRobin, pipeline.stages.size(), most)) {
    if (v.ministage < pipeline.stages[v.stage].ministages.size()) order.push_back(v);
  }
  const auto before = [&pipeline](const VirtualStage& a, const VirtualStage& b) {
    return pipeline.stages[a.stage].ministages[a.ministage].first < pipeline.stages[b.stage].ministages[b.ministage].first;
  };
  // Nearly every plan's are: searches ask often.
  if (!std::is_sorted(order.begin(), order.end(), before)) std::stable_sort(order.begin(), order.end(), before);
  return order;
}

size_t EmbeddingStage(const PipelinePlan& pipeline) { return StageOfExtreme(pipeline, std::less<>()); }
size_t HeadStage(const PipelinePlan& pipeline) { return StageOfExtreme(pipeline, std::greater_equal<>()); }

std::vector<VirtualStage> MappedStages(VirtualStageMap map, size_t stages, size_t ministages) {
  std::vector<VirtualStage> order;
  order.reserve(stages * ministages);
  for (size_t i = 0; i < ministages; ++i) {
    const bool back = map == VirtualStageMap::kV && i % 2 == 1;
    for (size_t s = 0; s < stages; ++s) order.push_back({back ? stages - 1 - s : s, i});
  }
  return order;
}

std::string_view MapName(VirtualStageMap map) { return map == VirtualStageMap::kV ? "in a V" : "round robin"; }

}  // namespace motley::planner
