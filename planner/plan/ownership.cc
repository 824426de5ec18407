#include "planner/plan/ownership.h"

#include <algorithm>

#include "planner/plan/placement.h"
#include "planner/plan/virtual_stages.h"

namespace motley::planner {
namespace {

// Ranks that hold the stage's state once, and the number of the first of them.
struct Holders {
  int first_rank = 0;
  std::vector<const RankPlan*> ranks;
};

// Without sharding every unit of the stage holds everything.
std::vector<Holders> HoldersOf(const StagePlan& stage, int first_rank) {
  std::vector<Holders> all;
  for (const UnitPlan& unit : stage.units) {
    if (all.empty() || stage.zero_stage == 0) all.push_back({first_rank, {}});
    for (const RankPlan& rank : unit.ranks) all.back().ranks.push_back(&rank);
    first_rank += static_cast<int>(unit.ranks.size());
  }
  return all;
}

// What pipeline `p` holds of each unit of the model.
Ownership HeldBy(const PipelinePlan& pipeline, int first_rank, const std::vector<int64_t>& elements) {
  Ownership held(elements.size());
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    const StagePlan& stage = pipeline.stages[s];
    const std::vector<size_t> units = UnitsOfStage(pipeline, s, elements.size());
    std::vector<int64_t> sizes;
    for (const size_t unit : units) sizes.push_back(elements[unit]);
    const std::vector<Holders> all = HoldersOf(stage, first_rank);
    for (const Holders& holders : all) {
      const std::vector<UnitPlacement> placement = PlacementOf(stage, holders.ranks, sizes);
      for (size_t u = 0; u < units.size(); ++u) {
        const std::vector<int64_t>& bounds = placement[u].bounds;
        for (size_t r = 0; r < holders.ranks.size(); ++r) {
          if (bounds[r] == bounds[r + 1]) continue;
          const int rank = holders.first_rank + static_cast<int>(r);
          held[units[u]].push_back({rank, bounds[r], bounds[r + 1], &holders == &all.front()});
        }
      }
    }
    first_rank = all.back().first_rank + static_cast<int>(all.back().ranks.size());
  }
  return held;
}

// Where what any of the pipelines' ranks hold of one unit begins or ends.
std::vector<int64_t> Borders(const std::vector<Ownership>& held, size_t unit) {
  std::vector<int64_t> borders;
  for (const Ownership& pipeline : held) {
    for (const OwnedRange& range : pipeline[unit]) borders.insert(borders.end(), {range.begin, range.end});
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

// Every piece that the same ranks hold is cut in as many parts as there are pipelines; pipeline `p` owns part p.
void AddParts(const OwnedRange& held, const std::vector<int64_t>& borders, int64_t p, int64_t pipelines,
              std::vector<OwnedRange>* owned) {
  for (auto border = std::lower_bound(borders.begin(), borders.end(), held.begin); *border < held.end; ++border) {
    const int64_t begin = *border, length = *(border + 1) - begin;
    OwnedRange part = held;
    part.begin = begin + length * p / pipelines;
    part.end = begin + length * (p + 1) / pipelines;
    if (part.begin < part.end) owned->push_back(part);
  }
}

}  // namespace

std::vector<size_t> UnitsOfStage(const PipelinePlan& pipeline, size_t s, size_t num_units) {
  std::vector<size_t> units;
  if (s == EmbeddingStage(pipeline)) units.push_back(0);
  for (const LayerRange& range : pipeline.stages[s].ministages) {
    for (int64_t layer = range.first; layer <= range.last; ++layer) units.push_back(static_cast<size_t>(layer + 1));
  }
  if (s == HeadStage(pipeline)) units.push_back(num_units - 1);
  return units;
}

std::vector<UnitPlacement> PlacementOf(const StagePlan& stage, const std::vector<const RankPlan*>& ranks,
                                       const std::vector<int64_t>& elements) {
  if (!stage.placement.empty()) return stage.placement;
  std::vector<double> shares;
  for (const RankPlan* rank : ranks) shares.push_back(stage.zero_stage == 0 ? rank->tp_share : rank->shard_ratio);
  return PlaceByShares(elements, shares);
}

std::vector<UnitPlacement> PlacementOf(const StagePlan& stage, const std::vector<int64_t>& elements) {
  return PlacementOf(stage, HoldersOf(stage, 0).front().ranks, elements);
}

Ownership OwnershipOf(const Plan& plan, const std::vector<int64_t>& elements) {
  std::vector<Ownership> held;  // by pipeline
  int first_rank = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    held.push_back(HeldBy(pipeline, first_rank, elements));
    for (const StagePlan& stage : pipeline.stages) {
      for (const UnitPlan& unit : stage.units) first_rank += static_cast<int>(unit.ranks.size());
    }
  }
  Ownership ownership(elements.size());
  for (size_t u = 0; u < elements.size(); ++u) {
    const std::vector<int64_t> borders = Borders(held, u);
    for (size_t p = 0; p < held.size(); ++p) {
      for (OwnedRange range : held[p][u]) {
        if (plan.pipelines_zero_stage > 0) {
          AddParts(range, borders, static_cast<int64_t>(p), static_cast<int64_t>(held.size()), &ownership[u]);
        } else {
          range.first &= p == 0;
          ownership[u].push_back(range);
        }
      }
    }
  }
  return ownership;
}

std::vector<UnitPlacement> SteppersOf(const Plan& plan, const std::vector<int64_t>& elements) {
  const PipelinePlan& pipeline = plan.pipelines.front();
  size_t world = 0;
  for (const StagePlan& stage : pipeline.stages) world += stage.units.size();
  std::vector<UnitPlacement> all(elements.size());
  size_t first_rank = 0;
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    const StagePlan& stage = pipeline.stages[s];
    const std::vector<size_t> units = UnitsOfStage(pipeline, s, elements.size());
    std::vector<int64_t> sizes;
    for (const size_t unit : units) sizes.push_back(elements[unit]);
    const size_t ranks = stage.units.size();
    const std::vector<UnitPlacement> placement =
        stage.zero_stage == 0 ? PlaceByShares(sizes, std::vector<double>(ranks, 1.0 / static_cast<double>(ranks)))
                              : PlacementOf(stage, sizes);
    for (size_t u = 0; u < units.size(); ++u) {
      std::vector<int64_t>& bounds = all[units[u]].bounds;
      bounds.assign(first_rank, 0);
      bounds.insert(bounds.end(), placement[u].bounds.begin(), placement[u].bounds.end());
      bounds.resize(world + 1, sizes[u]);
    }
    first_rank += ranks;
  }
  return all;
}

}  // namespace motley::planner
