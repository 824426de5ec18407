#include "planner/lowering/pipeline_places.h"

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

void AddGroups(const Setting& setting, const PlanView& view, const PipelineView& pipeline, PipelinePlaces* places) {
  for (int s = 0; s < pipeline.num_stages; ++s) places->groups.push_back(ByNode(setting, view, RanksOf(view, {s})));
  const int first = pipeline.embedding_stage(), last = pipeline.head_stage();
  if (!setting.workload.model.tie_embeddings || first == last) return;
  places->tied_group = static_cast<int32_t>(places->groups.size());
  places->groups.push_back(ByNode(setting, view, RanksOf(view, {first, last})));
}

}  // namespace

PipelinePlaces PlacesOf(const Setting& setting, const PlanView& view) {
  PipelinePlaces places;
  AddGroups(setting, view, view.pipelines.front(), &places);
  return places;
}

}  // namespace motley::planner
