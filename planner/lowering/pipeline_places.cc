#include "planner/lowering/pipeline_places.h"

#include <algorithm>

namespace motley::planner {
namespace {

// Nodes and ranks in the plan's order.
std::vector<int32_t> ByNode(const Setting& setting, const PlanView& view, const std::vector<int32_t>& ranks) {
  std::vector<int32_t> ring;
  std::vector<bool> taken(ranks.size(), false);
  const auto node_of = [&](int32_t rank) { return setting.cluster.devices[view.ranks[rank].device].node; };
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t j = i; j < ranks.size(); ++j) {
      if (taken[j] || node_of(ranks[j]) != node_of(ranks[i])) continue;
      taken[j] = true;
      ring.push_back(ranks[j]);
    }
  }
  return ring;
}

std::vector<int32_t> RanksOf(const PlanView& view, const std::vector<int>& stages) {
  std::vector<int32_t> ranks;
  for (const int s : stages) {
    for (int i = 0; i < view.stages[s].num_ranks; ++i) ranks.push_back(view.stages[s].first_rank + i);
  }
  return ranks;
}

void AddTiedGroup(const Setting& setting, const PlanView& view, const PipelineView& pipeline, PipelinePlaces* places) {
  const int first = pipeline.embedding_stage(), last = pipeline.head_stage();
  const bool apart = setting.workload.model.tie_embeddings && first != last;
  places->tied_group.push_back(apart ? static_cast<int32_t>(places->groups.size()) : -1);
  if (apart) places->groups.push_back(ByNode(setting, view, RanksOf(view, {first, last})));
}

// Its place in the list, where each is once, however many units it serves.
int32_t ListedGroup(const std::vector<int32_t>& group, PipelinePlaces* places) {
  const auto listed = std::find(places->groups.begin(), places->groups.end(), group);
  const auto place = static_cast<int32_t>(listed - places->groups.begin());
  if (listed == places->groups.end()) places->groups.push_back(group);
  return place;
}

void AddSumGroups(const Setting& setting, const PlanView& view, PipelinePlaces* places) {
  for (const std::vector<int>& stages : HoldersOf(view, UnitsAsBlocks(setting), setting.workload.model.tie_embeddings)) {
    places->sum_group.push_back(ListedGroup(ByNode(setting, view, RanksOf(view, stages)), places));
  }
}

// All units of the stage are of one width.
void AddTensorParallelGroups(const Setting& setting, const PlanView& view, const StageView& stage, PipelinePlaces* places) {
  const int32_t width = stage.num_ranks / stage.num_units;
  if (width == 1) return;
  const auto add = [&](int32_t first, int32_t step, int32_t count, std::vector<int32_t>* group_of) {
    std::vector<int32_t> ranks;
    for (int32_t i = 0; i < count; ++i) ranks.push_back(stage.first_rank + first + i * step);
    const int32_t group = ListedGroup(ByNode(setting, view, ranks), places);
    for (const int32_t rank : ranks) (*group_of)[rank] = group;
  };
  for (int32_t unit = 0; unit < stage.num_units; ++unit) add(unit * width, 1, width, &places->tp_group);
  for (int32_t slice = 0; slice < width; ++slice) add(slice, width, stage.num_units, &places->slice_group);
}

}  // namespace

PipelinePlaces PlacesOf(const Setting& setting, const PlanView& view) {
  PipelinePlaces places;
  for (int s = 0; s < static_cast<int>(view.stages.size()); ++s) {
    places.groups.push_back(ByNode(setting, view, RanksOf(view, {s})));
  }
  for (const PipelineView& pipeline : view.pipelines) AddTiedGroup(setting, view, pipeline, &places);
  places.tp_group.assign(view.ranks.size(), -1);
  places.slice_group = places.tp_group;
  for (const StageView& stage : view.stages) AddTensorParallelGroups(setting, view, stage, &places);
  if (view.pipelines.size() > 1) AddSumGroups(setting, view, &places);
  return places;
}

std::vector<std::vector<int>> HoldersOf(const PlanView& view, const ModelBlocks& blocks, bool tied) {
  std::vector<std::vector<int>> holders(blocks.parts.size());
  for (const PipelineView& pipeline : view.pipelines) {
    for (const Element& element : pipeline.elements) {
      for (const int32_t block : BlocksOf(blocks, element)) holders[block].push_back(element.stage);
      if (tied && element.head) holders[0].push_back(element.stage);
    }
  }
  for (std::vector<int>& stages : holders) {
    std::sort(stages.begin(), stages.end());
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  }
  return holders;
}

}  // namespace motley::planner
