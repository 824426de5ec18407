// Settings and plans for tests of lowering, memory and evaluation: small models on clusters made by hand.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device_table.h"
#include "gtest/gtest.h"
#include "planner/plan/placement.h"
#include "planner/plan/plan.h"
#include "planner/plan/virtual_stages.h"
#include "planner/setting/setting.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/drawn_offload.h"

namespace motley::planner {

// Seconds of transfers that are not what a test is about.
inline constexpr double kFastLink = 1e13;
inline constexpr double kFastNic = 2e12;

inline CardKind CardNamed(const std::string& name) {
  const GpuSpec gpu = FindGpu(name).value();
  return {std::string(gpu.name),      gpu.fp32_flops, gpu.tf32_flops, gpu.fp16_flops, gpu.bf16_flops, gpu.memory_bytes,
          gpu.memory_bytes_per_second};
}

// Nodes of cards by name: {{"T4", "T4"}, {"A10G"}}. `nic` and `link` in bytes a second.
inline Cluster Nodes(const std::vector<std::vector<std::string>>& nodes, double link = 12e9, double nic = 3e9) {
  Cluster cluster;
  cluster.name = "boxes";
  cluster.regions = {"here"};
  for (size_t n = 0; n < nodes.size(); ++n) {
    ClusterNode node;
    node.name = NodeName("n" + std::to_string(n));
    node.device_link_bytes_per_second = link;
    node.device_link_latency_seconds = link == kFastLink ? 0 : 5e-6;
    node.nic_bytes_per_second = nic;
    node.nic_latency_seconds = nic == kFastNic ? 0 : 2e-5;
    node.host_memory_bytes = int64_t{256} << 30;
    node.host_link_bytes_per_second = std::min(link, 12e9);
    node.price_per_hour = 2;
    for (const std::string& card : nodes[n]) {
      const auto found = std::find_if(cluster.kinds.begin(), cluster.kinds.end(),
                                      [&](const CardKind& k) { return k.name == CardNamed(card).name; });
      const int kind = static_cast<int>(found - cluster.kinds.begin());
      if (found == cluster.kinds.end()) cluster.kinds.push_back(CardNamed(card));
      node.devices.push_back(static_cast<int>(cluster.devices.size()));
      cluster.devices.push_back(
          {DeviceId(node.name.value() + "/gpu" + std::to_string(node.devices.size() - 1)), kind, static_cast<int>(n)});
    }
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

inline ModelShape MediumModel(int64_t layers, bool tied) {
  ModelShape model = SmallModel(tied, layers);
  model.vocab_size = 8192;
  model.hidden_size = 512;
  model.num_heads = model.num_kv_heads = 8;
  model.head_dim = 64;
  model.intermediate_size = 2048;
  model.max_positions = 512;
  return model;
}

inline Workload WorkOf(const ModelShape& model, int64_t batch, DType dtype = DType::kFloat32) {
  Workload workload;
  workload.model_name = "medium";
  workload.model = model;
  workload.global_batch = batch;
  workload.seq_len = 256;
  workload.dtype = dtype;
  return workload;
}

inline std::unique_ptr<Setting> MakeSetting(Cluster cluster, const Workload& workload) {
  auto setting = Setting::Create(std::move(cluster), workload, PlanRequest(), nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

// The same of a published system, which keeps its paper's state.
inline std::unique_ptr<Setting> MakePublishedSetting(Cluster cluster, const Workload& workload) {
  PlanRequest request;
  request.fidelity = Fidelity::kPublished;
  auto setting = Setting::Create(std::move(cluster), workload, std::move(request), nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

// The setting's devices [first, first + microbatches.size()) as single-rank units with even shares.
inline StagePlan StageOf(const Setting& setting, int first, const std::vector<std::vector<int64_t>>& microbatches,
                         std::vector<LayerRange> ministages, int zero_stage = 3, OpSet recompute = OpSet::None()) {
  StagePlan stage;
  stage.ministages = std::move(ministages);
  stage.zero_stage = zero_stage;
  for (size_t u = 0; u < microbatches.size(); ++u) {
    RankPlan rank;
    rank.device = setting.cluster.devices[static_cast<size_t>(first) + u].id;
    rank.shard_ratio = 1.0 / static_cast<double>(microbatches.size());
    rank.recompute = recompute;
    stage.units.push_back({{rank}, microbatches[u]});
  }
  return stage;
}

inline Plan PlanOf(const Setting& setting, ScheduleFamily schedule, std::vector<PipelinePlan> pipelines) {
  Plan plan;
  plan.strategy = "test";
  plan.global_batch = setting.workload.global_batch;
  plan.seq_len = setting.workload.seq_len;
  plan.dtype = setting.workload.dtype;
  plan.schedule = schedule;
  plan.pipelines = std::move(pipelines);
  return plan;
}

// Layers dealt to stages, `rounds` ministages each, as evenly as they go.
inline std::vector<std::vector<LayerRange>> DealLayers(int64_t layers, int64_t stages, int64_t rounds,
                                                       VirtualStageMap map = VirtualStageMap::kRoundRobin) {
  std::vector<std::vector<LayerRange>> result(static_cast<size_t>(stages));
  const int64_t pieces = stages * rounds;
  int64_t i = 0;
  for (const VirtualStage& v : MappedStages(map, static_cast<size_t>(stages), static_cast<size_t>(rounds))) {
    result[v.stage].push_back({layers * i / pieces, layers * (i + 1) / pieces - 1});
    ++i;
  }
  return result;
}

// A valid plan over some of the setting's devices; everything that the language has is drawn with some probability.
class RandomPlans {
 public:
  explicit RandomPlans(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  // `calm`: links so fast that transfers hide, and (Next) plans in which the stages' microbatches line up, as strategies make
  // them.
  std::unique_ptr<Setting> NextSetting(bool calm = false) {
    calm_ = calm;
    static const char* const kCards[] = {"T4", "A10G", "V100-16GB", "A100-40GB"};
    std::vector<std::vector<std::string>> nodes(static_cast<size_t>(1 + Below(4)));
    for (auto& node : nodes) node.assign(static_cast<size_t>(1 + Below(4)), kCards[Below(4)]);
    Cluster cluster = Nodes(nodes, Below(2) == 0 ? 12e9 : 100e9, Below(2) == 0 ? 3e9 : 25e9);
    if (calm) {
      cluster = Nodes(nodes, 400e9, 200e9);
    } else if (Below(4) == 0) {
      cluster.overlap_efficiency = 0.7;
    }
    return MakeSetting(std::move(cluster), WorkOf(MediumModel(8 + Below(3) * 4, Below(2) == 0), (calm ? 24 : 8) * (1 + Below(6)),
                                                  Below(2) == 0 ? DType::kFloat32 : DType::kFloat16));
  }

  // Kinds by rank, and when units are stepped, where the language has them.
  void DrawOffload(Plan* plan) {
    planner::DrawOffload(
        kWholeLanguage, [this](int64_t n) { return Below(n); }, plan);
  }

  Plan Next(const Setting& setting) {
    const int devices = setting.num_devices();
    const ScheduleFamily schedule = static_cast<ScheduleFamily>(Below(5));
    int64_t pipelines = devices >= 2 && Below(4) == 0 ? 2 : 1;
    Plan plan = PlanOf(setting, schedule, {});
    plan.pipelines_zero_stage = static_cast<int>(Below(3));
    int next = 0;
    for (int64_t p = 0; p < pipelines; ++p) {
      const int own = static_cast<int>((p + 1) * devices / pipelines) - next;
      plan.pipelines.push_back(Pipeline(setting, schedule, next, own, setting.workload.global_batch / pipelines));
      next += own;
    }
    return plan;
  }

 private:
  PipelinePlan Pipeline(const Setting& setting, ScheduleFamily schedule, int first, int devices, int64_t batch) {
    const int64_t layers = setting.workload.model.num_layers;
    const int64_t stages = 1 + Below(std::min<int64_t>(devices, 4));
    const bool several = schedule == ScheduleFamily::kLayered || schedule == ScheduleFamily::kInterleaved;
    const int64_t rounds = several && layers >= 2 * stages ? 1 + Below(2) : 1;
    const auto dealt = DealLayers(layers, stages, rounds);
    PipelinePlan pipeline;
    int next = first;
    for (int64_t s = 0; s < stages; ++s) {
      const int own = first + static_cast<int>((s + 1) * devices / stages) - next;
      pipeline.stages.push_back(Stage(setting, schedule, next, own, batch, stages, dealt[s]));
      next += own;
    }
    return pipeline;
  }

  StagePlan Stage(const Setting& setting, ScheduleFamily schedule, int first, int devices, int64_t batch, int64_t stages,
                  const std::vector<LayerRange>& ministages) {
    const int width = devices % 2 == 0 && Below(4) == 0 ? 2 : 1;
    const int units = devices / width;
    // Interleaved wants equal counts on every unit, a multiple of the stages; one computing unit is the simplest of these.
    const bool strict = schedule == ScheduleFamily::kInterleaved && stages > 1 && ministages.size() > 1;
    StagePlan stage;
    stage.ministages = ministages;
    stage.zero_stage = static_cast<int>(Below(4));
    const bool offload = Below(6) == 0 && (!calm_ || schedule == ScheduleFamily::kLayered);
    const OpSet some = OpSet().With(Op::kNorm1).With(Op::kActivation);
    const OpSet recompute = Below(2) == 0 ? OpSet::None() : Below(2) == 0 ? OpSet::All() : some;
    for (int u = 0; u < units; ++u) {
      UnitPlan unit;
      for (int r = 0; r < width; ++r) {
        RankPlan rank;
        rank.device = setting.cluster.devices[first + u * width + r].id;
        rank.tp_share = width == 1 ? 1 : r == 0 ? 0.75 : 0.25;
        rank.shard_ratio = units == 1 ? rank.tp_share : 1.0 / static_cast<double>(units * width);  // alone: what it computes
        rank.recompute = recompute;
        rank.offload.activations = rank.offload.parameters = offload;
        unit.ranks.push_back(rank);
      }
      const int64_t own = strict ? (u == 0 ? batch : 0) : batch * (u + 1) / units - batch * u / units;
      if (strict && own > 0) unit.microbatches.assign(static_cast<size_t>(4 * 3), 1);
      if (strict && own > 0) unit.microbatches.back() += batch - 12;
      if (!strict) unit.microbatches = Microbatches(own, 1 + Below(3));
      if (calm_) {  // twelve samples of the pipeline at a time, dealt to as many units as divide them
        int64_t computing = units;
        while (12 % computing != 0) --computing;
        unit.microbatches.assign(static_cast<size_t>(u < computing ? batch / 12 : 0), 12 / computing);
      }
      stage.units.push_back(std::move(unit));
    }
    return stage;
  }

  std::mt19937_64 random_;
  bool calm_ = false;
};

// Takes away what the engine does not run on one pipeline of single devices; ValidateForEngine says what is left.
inline void MakeRunnable(Plan* plan) {
  for (PipelinePlan& pipeline : plan->pipelines) {
    for (StagePlan& stage : pipeline.stages) {
      for (UnitPlan& unit : stage.units) {
        for (RankPlan& rank : unit.ranks) {
          rank.offload = OffloadKinds::None();
          if (!rank.recompute.all()) rank.recompute = OpSet::None();
        }
      }
    }
  }
}

}  // namespace motley::planner
