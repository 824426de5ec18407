#include "planner/lowering/pipeline_places.h"

#include <utility>

#include "planner/lowering/stage_script.h"

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

void AddGroups(const Setting& setting, const PlanView& view, int num_stages, PipelinePlaces* places) {
  for (int s = 0; s < num_stages; ++s) places->groups.push_back(ByNode(setting, view, RanksOf(view, {s})));
  if (!setting.workload.model.tie_embeddings || num_stages == 1) return;
  places->tied_group = static_cast<int32_t>(places->groups.size());
  places->groups.push_back(ByNode(setting, view, RanksOf(view, {0, num_stages - 1})));
}

void AddBorders(const std::vector<Element>& elements, PipelinePlaces* places) {
  for (size_t e = 1; e < elements.size(); ++e) {
    const Element& element = elements[e];
    if (elements[e - 1].stage == element.stage) continue;
    const int32_t first = UnitsOf(PartOf(element), false).front();
    places->backward_borders[first] = {static_cast<int>(e) - 1, first};
    places->forward_borders[first - 1] = {static_cast<int>(e), first};
  }
}

}  // namespace

PipelinePlaces PlacesOf(const Setting& setting, const PlanView& view) {
  const PipelineView& pipeline = view.pipelines.front();
  const size_t units = static_cast<size_t>(setting.workload.model.num_layers) + 2;
  PipelinePlaces places;
  AddGroups(setting, view, pipeline.num_stages, &places);
  places.forward_borders.resize(units);
  places.backward_borders.resize(units);
  AddBorders(pipeline.elements, &places);
  return places;
}

}  // namespace motley::planner
