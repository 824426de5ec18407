// The optimum of HexiScale's own problem on a small cluster by looking at every layout, for tests and benchmarks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/groups/split_cut.h"
#include "planner/strategies/hexiscale/hexiscale_problem.h"

namespace motley::planner {

// Every layout of a small cluster: partitions into pipelines, stages of equal devices of a node in every order, microbatches of
// powers of two, all batches, all layers. A stage keeps its activations where they fit, which only saves time.
class EveryHexiscaleLayout {
 public:
  EveryHexiscaleLayout(const Setting& setting, HexiscaleProblem* problem) : setting_(setting), problem_(problem) {}

  // Seconds; infinite where no layout fits.
  double Best() {
    Parts parts;
    Partition(0, &parts);
    return best_;
  }
  const HexiscaleLayout& best_layout() const { return best_layout_; }

 private:
  void Partition(int device, Parts* parts) {
    if (device == setting_.num_devices()) {
      parts_ = *parts;
      HexiscaleLayout layout;
      layout.zero_stage = 2;
      Stages(0, parts_[0], {}, &layout);
      return;
    }
    for (size_t p = 0; p < parts->size(); ++p) {
      (*parts)[p].push_back(device);
      Partition(device + 1, parts);
      (*parts)[p].pop_back();
    }
    parts->push_back({device});
    Partition(device + 1, parts);
    parts->pop_back();
  }

  // Devices not in a stage yet are `left`.
  void Stages(size_t pipeline, const std::vector<int>& left, const HexiscalePipeline& so_far, HexiscaleLayout* layout) {
    if (left.empty()) {
      for (int64_t m = 1; m < 2 * setting_.workload.global_batch; m *= 2) {
        layout->pipelines.push_back(so_far);
        layout->pipelines.back().microbatch = m;
        if (pipeline + 1 < parts_.size()) {
          Stages(pipeline + 1, parts_[pipeline + 1], {}, layout);
        } else {
          Batches(0, setting_.workload.global_batch, layout);
        }
        layout->pipelines.pop_back();
      }
      return;
    }
    for (uint32_t mask = 1; mask < (1u << left.size()); ++mask) {
      HexiscaleStage stage;
      std::vector<int> rest;
      for (size_t i = 0; i < left.size(); ++i) ((mask >> i) & 1 ? stage.devices : rest).push_back(left[i]);
      const auto alike = [&](int device) {
        const ClusterDevice& a = setting_.cluster.devices[device];
        const ClusterDevice& b = setting_.cluster.devices[stage.devices[0]];
        return a.node == b.node && a.kind == b.kind;
      };
      if (!std::all_of(stage.devices.begin(), stage.devices.end(), alike)) continue;
      if (setting_.workload.model.num_heads % static_cast<int64_t>(stage.devices.size()) != 0) continue;
      HexiscalePipeline next = so_far;
      next.stages.push_back(std::move(stage));
      Stages(pipeline, rest, next, layout);
    }
  }

  void Batches(size_t pipeline, int64_t left, HexiscaleLayout* layout) {
    if (pipeline + 1 == layout->pipelines.size()) {
      layout->pipelines[pipeline].batch = left;
      Layers(0, 0, setting_.workload.model.num_layers, layout);
      return;
    }
    for (int64_t batch = 1; batch < left; ++batch) {
      layout->pipelines[pipeline].batch = batch;
      Batches(pipeline + 1, left - batch, layout);
    }
  }

  void Layers(size_t pipeline, size_t stage, int64_t left, HexiscaleLayout* layout) {
    HexiscalePipeline& of = layout->pipelines[pipeline];
    const int64_t later = static_cast<int64_t>(of.stages.size() - stage) - 1;
    if (later == 0) {
      of.stages[stage].layers = left;
      if (pipeline + 1 < layout->pipelines.size()) {
        Layers(pipeline + 1, 0, setting_.workload.model.num_layers, layout);
      } else {
        Price(*layout);
      }
      return;
    }
    for (int64_t l = 1; l <= left - later; ++l) {
      of.stages[stage].layers = l;
      Layers(pipeline, stage + 1, left - l, layout);
    }
  }

  void Price(HexiscaleLayout layout) {
    const int replicas = static_cast<int>(layout.pipelines.size());
    for (HexiscalePipeline& pipeline : layout.pipelines) {
      std::vector<StageShape> shapes;
      for (const HexiscaleStage& stage : pipeline.stages) shapes.push_back(problem_->ShapeOf(stage.devices));
      const auto most = [&](bool keep) {
        return problem_->StageCosts(shapes, pipeline.microbatch, pipeline.microbatches(), std::vector<bool>(shapes.size(), keep),
                                    replicas, 2);
      };
      const std::vector<StageCost> kept = most(true), full = most(false);
      for (size_t j = 0; j < shapes.size(); ++j) {
        pipeline.stages[j].keep = pipeline.stages[j].layers <= kept[j].most_layers;
        if (!pipeline.stages[j].keep && pipeline.stages[j].layers > full[j].most_layers) return;
      }
    }
    const double seconds = problem_->StepSeconds(layout);
    if (seconds >= best_) return;
    best_ = seconds;
    best_layout_ = std::move(layout);
  }

  const Setting& setting_;
  HexiscaleProblem* const problem_;
  Parts parts_;
  double best_ = std::numeric_limits<double>::infinity();
  HexiscaleLayout best_layout_;
};

// "n1/gpu0+n1/gpu1 4 layers, n2/gpu0 3 layers recomputed: batch 5 by 2 | ..." for people.
inline std::string ToText(const Setting& setting, const HexiscaleLayout& layout) {
  std::string text;
  for (const HexiscalePipeline& pipeline : layout.pipelines) {
    absl::StrAppend(&text, text.empty() ? "" : " | ");
    for (const HexiscaleStage& stage : pipeline.stages) {
      for (const int d : stage.devices) {
        const ClusterDevice& device = setting.cluster.devices[d];
        absl::StrAppend(&text, d == stage.devices[0] ? "" : "+", device.id.value(), " ", setting.cluster.kinds[device.kind].name);
      }
      absl::StrAppend(&text, " ", stage.layers, " layers", stage.keep ? ", " : " recomputed, ");
    }
    absl::StrAppend(&text, "batch ", pipeline.batch, " by ", pipeline.microbatch);
  }
  return text;
}

}  // namespace motley::planner
