// Every pipeline over given devices for a given batch: its stages, units, tensor-parallel shares, batches and microbatches, and
// its layers. A part of all_plans.h, which says what is left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

using Sets = std::vector<std::vector<int>>;
using Sizes = std::vector<int64_t>;  // layers of ministages, microbatches, batches

// Partitions into non-empty sets, each ascending, ordered by their first items.
inline std::vector<Sets> SetPartitions(const std::vector<int>& items) {
  std::vector<Sets> all = {{}};
  for (const int item : items) {
    std::vector<Sets> longer;
    for (const Sets& sets : all) {
      for (size_t i = 0; i <= sets.size(); ++i) {
        Sets next = sets;
        if (i == sets.size()) next.emplace_back();
        next[i].push_back(item);
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

// `total` as a sum of `parts` numbers of at least `least`, in every order.
inline std::vector<Sizes> Compositions(int64_t total, int64_t parts, int64_t least) {
  if (parts == 1) return total >= least ? std::vector<Sizes>{{total}} : std::vector<Sizes>{};
  std::vector<Sizes> all;
  for (int64_t first = least; first <= total - (parts - 1) * least; ++first) {
    for (Sizes& rest : Compositions(total - first, parts - 1, least)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

// `batch` as a sum of microbatches, the largest first.
inline std::vector<Sizes> MicrobatchLists(int64_t batch, int64_t largest) {
  if (batch == 0) return {{}};
  std::vector<Sizes> all;
  for (int64_t first = std::min(batch, largest); first > 0; --first) {
    for (Sizes& rest : MicrobatchLists(batch - first, first)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

class AllPipelines {
 public:
  explicit AllPipelines(const Setting& setting) : setting_(setting) {}

  // Over exactly these devices, computing `batch`. What is not chosen costs least: nothing is recomputed, nothing sharded.
  const std::vector<PipelinePlan>& Of(const std::vector<int>& devices, int64_t batch);

 private:
  struct UnitShape {
    std::vector<int> devices;
    std::vector<double> shares;
  };
  using StageShape = std::vector<UnitShape>;

  std::vector<std::vector<double>> Shares(size_t ranks) const;
  std::vector<StageShape> StageShapes(const std::vector<int>& devices) const;
  std::vector<std::vector<StageShape>> PipelineShapes(const std::vector<int>& devices) const;
  std::vector<std::vector<UnitPlan>> Works(const StageShape& shape, int64_t batch) const;
  void AddLayers(PipelinePlan pipeline, std::vector<PipelinePlan>* out) const;

  const Setting& setting_;
  std::map<std::pair<std::vector<int>, int64_t>, std::vector<PipelinePlan>> pipelines_;
};

// Key-value heads by rank as shares, in every way.
inline std::vector<std::vector<double>> AllPipelines::Shares(size_t ranks) const {
  const int64_t heads = setting_.workload.model.num_kv_heads;
  std::vector<std::vector<double>> all;
  for (const Sizes& sizes : Compositions(heads, static_cast<int64_t>(ranks), 1)) {
    std::vector<double>& shares = all.emplace_back();
    for (const int64_t own : sizes) shares.push_back(static_cast<double>(own) / static_cast<double>(heads));
  }
  return all;
}

inline std::vector<AllPipelines::StageShape> AllPipelines::StageShapes(const std::vector<int>& devices) const {
  std::vector<StageShape> all;
  for (const Sets& units : SetPartitions(devices)) {
    std::vector<StageShape> shapes = {{}};
    for (const std::vector<int>& unit : units) {
      std::vector<StageShape> longer;
      for (const StageShape& shape : shapes) {
        for (const std::vector<double>& shares : Shares(unit.size())) {
          longer.push_back(shape);
          longer.back().push_back({unit, shares});
        }
      }
      shapes = std::move(longer);
    }
    all.insert(all.end(), shapes.begin(), shapes.end());
  }
  return all;
}

inline std::vector<std::vector<AllPipelines::StageShape>> AllPipelines::PipelineShapes(const std::vector<int>& devices) const {
  std::vector<std::vector<StageShape>> all;
  for (Sets stages : SetPartitions(devices)) {
    if (static_cast<int64_t>(stages.size()) > setting_.workload.model.num_layers) continue;
    std::sort(stages.begin(), stages.end());
    do {
      std::vector<std::vector<StageShape>> shapes = {{}};
      for (const std::vector<int>& stage : stages) {
        std::vector<std::vector<StageShape>> longer;
        for (const auto& shape : shapes) {
          for (const StageShape& own : StageShapes(stage)) {
            longer.push_back(shape);
            longer.back().push_back(own);
          }
        }
        shapes = std::move(longer);
      }
      all.insert(all.end(), shapes.begin(), shapes.end());
    } while (std::next_permutation(stages.begin(), stages.end()));
  }
  return all;
}

// The stage's units with every batch and every list of microbatches. Units of several ranks must compute.
inline std::vector<std::vector<UnitPlan>> AllPipelines::Works(const StageShape& shape, int64_t batch) const {
  std::vector<std::vector<UnitPlan>> all;
  for (const Sizes& batches : Compositions(batch, static_cast<int64_t>(shape.size()), 0)) {
    std::vector<std::vector<UnitPlan>> works = {{}};
    for (size_t u = 0; u < shape.size(); ++u) {
      UnitPlan unit;
      for (size_t r = 0; r < shape[u].devices.size(); ++r) {
        RankPlan& rank = unit.ranks.emplace_back();
        rank.device = setting_.cluster.devices[shape[u].devices[r]].id;
        rank.tp_share = shape[u].shares[r];
      }
      std::vector<std::vector<UnitPlan>> longer;
      for (const Sizes& microbatches : MicrobatchLists(batches[u], batches[u])) {
        if (microbatches.empty() && unit.ranks.size() > 1) continue;
        unit.microbatches = microbatches;
        for (const std::vector<UnitPlan>& work : works) {
          longer.push_back(work);
          longer.back().push_back(unit);
        }
      }
      works = std::move(longer);
    }
    all.insert(all.end(), works.begin(), works.end());
  }
  return all;
}

inline void AllPipelines::AddLayers(PipelinePlan pipeline, std::vector<PipelinePlan>* out) const {
  const int64_t layers = setting_.workload.model.num_layers, stages = static_cast<int64_t>(pipeline.stages.size());
  for (int64_t ministages = 1; ministages * stages <= layers; ++ministages) {
    for (const Sizes& sizes : Compositions(layers, ministages * stages, 1)) {
      for (StagePlan& stage : pipeline.stages) stage.ministages.clear();
      int64_t first = 0;
      for (size_t i = 0; i < sizes.size(); ++i) {
        pipeline.stages[i % pipeline.stages.size()].ministages.push_back({first, first + sizes[i] - 1});
        first += sizes[i];
      }
      out->push_back(pipeline);
    }
  }
}

inline const std::vector<PipelinePlan>& AllPipelines::Of(const std::vector<int>& devices, int64_t batch) {
  const auto [at, added] = pipelines_.try_emplace({devices, batch});
  if (!added) return at->second;
  for (const std::vector<StageShape>& shape : PipelineShapes(devices)) {
    std::vector<PipelinePlan> pipelines = {{}};
    for (const StageShape& stage : shape) {
      std::vector<PipelinePlan> longer;
      for (const std::vector<UnitPlan>& units : Works(stage, batch)) {
        StagePlan plan;
        plan.units = units;
        plan.zero_stage = 0;
        for (const PipelinePlan& pipeline : pipelines) {
          longer.push_back(pipeline);
          longer.back().stages.push_back(plan);
        }
      }
      pipelines = std::move(longer);
    }
    for (PipelinePlan& pipeline : pipelines) AddLayers(std::move(pipeline), &at->second);
  }
  return at->second;
}

}  // namespace motley::planner
