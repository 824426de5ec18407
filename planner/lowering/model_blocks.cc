#include "planner/lowering/model_blocks.h"

#include <algorithm>

namespace motley::planner {
namespace {

// Of a stage. Reductions that overlap its last backward; more say no more about its end.
constexpr int64_t kBlocks = 16;
// The same where every microbatch pays for them.
constexpr int64_t kBlocksOfEach = 4;

// Of a ministage's layers [begin, end).
int64_t NumBlocks(const StageView& stage, int64_t layers) {
  const auto ministages = static_cast<int64_t>(stage.plan->ministages.size());
  const StateInTurn& state = stage.state;
  if (state.GathersByUnit()) return layers;
  if (state.layered() && state.offload.parameters) return 1;
  if (!state.layered() && (state.Gathers() || state.Reduces())) return std::max<int64_t>(1, kBlocksOfEach / ministages);
  return state.shared() || state.across ? std::max<int64_t>(1, kBlocks / ministages) : 1;
}

void AddCuts(const PlanView& view, const Element& element, std::vector<int64_t>* cuts) {
  const StageView& stage = view.stages[element.stage];
  int64_t begin = element.first_layer, end = begin + element.layers;
  cuts->push_back(begin);
  // A stream's first and last unit are blocks of their own.
  if (stage.state.GathersEveryRound() && !element.embedding && end - begin > 1) cuts->push_back(++begin);
  if (stage.state.GathersEveryRound() && !element.head && end - begin > 1) cuts->push_back(--end);
  const int64_t layers = end - begin, blocks = std::min(layers, NumBlocks(stage, layers));
  for (int64_t b = 1; b < blocks; ++b) cuts->push_back(begin + layers * b / blocks);
}

ModelBlocks BlocksBetween(const Setting& setting, const std::vector<int64_t>& cuts) {
  const Costs& costs = setting.costs;
  ModelBlocks blocks;
  blocks.parts.push_back({.embedding = true});
  blocks.elements.push_back(costs.UnitElements(UnitKind::kEmbedding));
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    blocks.parts.push_back({.first_layer = cuts[i], .layers = cuts[i + 1] - cuts[i]});
    blocks.elements.push_back(blocks.parts.back().layers * costs.UnitElements(UnitKind::kLayer));
  }
  blocks.parts.push_back({.first_layer = cuts.back(), .head = true});
  blocks.elements.push_back(costs.UnitElements(UnitKind::kHead));
  return blocks;
}

}  // namespace

ModelBlocks UnitsAsBlocks(const Setting& setting) {
  std::vector<int64_t> cuts;
  for (int64_t layer = 0; layer <= setting.workload.model.num_layers; ++layer) cuts.push_back(layer);
  return BlocksBetween(setting, cuts);
}

ModelBlocks CoarseBlocks(const Setting& setting, const PlanView& view) {
  std::vector<int64_t> cuts = {0, setting.workload.model.num_layers};
  for (const PipelineView& pipeline : view.pipelines) {
    for (const Element& element : pipeline.elements) AddCuts(view, element, &cuts);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return BlocksBetween(setting, cuts);
}

std::vector<int32_t> BlocksOf(const ModelBlocks& blocks, const Element& element) {
  std::vector<int32_t> result;
  for (int32_t block = 0; block <= blocks.head(); ++block) {
    const Part& part = blocks.parts[block];
    const bool has_layers =
        part.layers > 0 && part.first_layer >= element.first_layer && part.first_layer < element.first_layer + element.layers;
    if (part.embedding ? element.embedding : part.head ? element.head : has_layers) result.push_back(block);
  }
  return result;
}

}  // namespace motley::planner
