#include "planner/lowering/pipeline_places.h"

#include <algorithm>
#include <numeric>

#include "common/model/parameters.h"
#include "common/program/shard_ranges.h"
#include "planner/lowering/ring_order.h"
#include "planner/lowering/shared_elements.h"
#include "planner/plan/placement.h"

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

void AddUnitGroups(const Setting& setting, const PlanView& view, PipelinePlaces* places) {
  places->tp_group.assign(view.ranks.size(), -1);
  for (const ActorView& unit : view.actors) {
    if (unit.ranks_per_unit == 1) continue;
    std::vector<int32_t> ranks(static_cast<size_t>(unit.ranks_per_unit));
    std::iota(ranks.begin(), ranks.end(), unit.first_rank);
    const int32_t group = ListedGroup(ByNode(setting, view, ranks), places);
    for (const int32_t rank : ranks) places->tp_group[rank] = group;
  }
}

// With whom each rank gathers (reduces) which elements of its arrays.
class ElementsByRank {
 public:
  ElementsByRank(const Setting& setting, const PlanView& view, const std::vector<ModelSlice>& slices, const Ownership& ownership,
                 PipelinePlaces* places)
      : setting_(setting),
        view_(view),
        slices_(slices),
        ownership_(ownership),
        tied_(setting.workload.model.tie_embeddings),
        holders_(HoldersOf(view, UnitsAsBlocks(setting), tied_)),
        places_(*places) {}

  // By rank and unit. `zero_stage`: from which ranks keep shards of the array.
  std::vector<std::vector<SharedElements>> From(int zero_stage) {
    Met met = None();
    for (size_t unit = 0; unit < holders_.size(); ++unit) {
      if (IsCut(unit, zero_stage)) Add(unit, PartsOf(unit, zero_stage), &met);
    }
    return met;
  }
  std::vector<std::vector<SharedElements>> InTurn() {
    Met met = None();
    for (size_t unit = 0; unit < holders_.size(); ++unit) {
      for (const int stage : holders_[unit]) {
        const StageView& s = view_.stages[stage];
        if (s.num_ranks > s.num_units && InShards(stage, unit, 2)) Add(unit, SlicesOf(unit, stage), &met);
      }
    }
    return met;
  }

 private:
  using Met = std::vector<std::vector<SharedElements>>;

  Met None() const { return Met(view_.ranks.size(), std::vector<SharedElements>(holders_.size())); }
  void Add(size_t unit, const std::vector<PartOfUnit>& parts, Met* met) {
    for (const SharedPiece& piece : SharedPieces(parts)) {
      const int32_t group = ListedGroup(ByNode(setting_, view_, piece.ranks), &places_);
      for (size_t i = 0; i < piece.ranks.size(); ++i) {
        (*met)[piece.ranks[i]][unit].push_back({group, {piece.in_array[i], piece.elements}});
      }
    }
  }
  bool InShards(int stage, size_t unit, int zero_stage) const {
    const StageView& s = view_.stages[stage];
    return s.state.across && s.state.ZeroAsRun() >= zero_stage && !(tied_ && unit == 0);
  }
  bool IsCut(size_t unit, int zero_stage) const {
    return std::any_of(holders_[unit].begin(), holders_[unit].end(), [&](int stage) {
      const std::vector<int32_t> ranks = RanksOf(view_, {stage});
      return InShards(stage, unit, zero_stage) ||
             std::any_of(ranks.begin(), ranks.end(), [this](int32_t rank) { return !slices_[rank].whole(); });
    });
  }
  std::vector<PartOfUnit> PartsOf(size_t unit, int zero_stage) const {
    std::vector<PartOfUnit> parts;
    for (const int stage : holders_[unit]) {
      const std::vector<PartOfUnit> slices = SlicesOf(unit, stage);
      const std::vector<PartOfUnit> own = InShards(stage, unit, zero_stage) ? ShardsOf(unit, slices) : slices;
      parts.insert(parts.end(), own.begin(), own.end());
    }
    return parts;
  }
  std::vector<PartOfUnit> SlicesOf(size_t unit, int stage) const {
    std::vector<PartOfUnit> parts;
    for (const int32_t rank : RanksOf(view_, {stage})) {
      parts.push_back({rank, RunsOf(setting_.costs.layout()[unit], slices_[rank])});
    }
    return parts;
  }
  // The stage's shards: each piece is shared out among those who have it in their slices.
  std::vector<PartOfUnit> ShardsOf(size_t unit, const std::vector<PartOfUnit>& slices) const {
    std::vector<std::vector<ShardedPart>> shared(slices.size());
    for (const SharedPiece& piece : SharedPieces(slices)) {
      const OwnedRanges of_piece = ShardRanges(ownership_.Of(static_cast<int32_t>(unit)), piece.ranks);
      for (size_t i = 0; i < slices.size(); ++i) {
        const auto at = std::find(piece.ranks.begin(), piece.ranks.end(), slices[i].rank);
        if (at == piece.ranks.end()) continue;
        const ArrayRange elements = {piece.in_array[static_cast<size_t>(at - piece.ranks.begin())], piece.elements};
        shared[i].push_back({of_piece, RunsWithin(slices[i].runs, elements)});
      }
    }
    std::vector<PartOfUnit> shards;
    for (size_t i = 0; i < slices.size(); ++i) shards.push_back({slices[i].rank, RunsOfShard(slices[i].rank, shared[i])});
    return shards;
  }

  const Setting& setting_;
  const PlanView& view_;
  const std::vector<ModelSlice>& slices_;
  const Ownership& ownership_;
  const bool tied_;
  const std::vector<std::vector<int>> holders_;  // by unit: stages
  PipelinePlaces& places_;
};

}  // namespace

PipelinePlaces PlacesOf(const Setting& setting, const PlanView& view, const std::vector<ModelSlice>& slices,
                        const Ownership& ownership) {
  PipelinePlaces places;
  for (int s = 0; s < static_cast<int>(view.stages.size()); ++s) {
    places.groups.push_back(ByNode(setting, view, RanksOf(view, {s})));
  }
  for (const PipelineView& pipeline : view.pipelines) AddTiedGroup(setting, view, pipeline, &places);
  AddUnitGroups(setting, view, &places);
  ElementsByRank met(setting, view, slices, ownership, &places);
  places.gathered = met.From(3);
  places.reduced = met.From(2);
  places.in_turn = met.InTurn();
  if (view.pipelines.size() > 1) {
    AddSumGroups(setting, view, &places);
    OrderRings(UnitElements(setting.costs.layout()), &places);
  }
  return places;
}

// Parameters from the first unit on, gradients from the last one on, as they are needed and made.
void OrderRings(const std::vector<int64_t>& elements, PipelinePlaces* places) {
  std::vector<RingTask> rings;
  for (size_t unit = 0; unit < elements.size(); ++unit) rings.push_back({places->sum_group[unit], elements[unit]});
  places->gather_order = RingOrder(rings, places->groups);
  std::reverse(rings.begin(), rings.end());
  places->sum_order = RingOrder(rings, places->groups);
  for (int32_t& unit : places->sum_order) unit = static_cast<int32_t>(rings.size()) - 1 - unit;
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
