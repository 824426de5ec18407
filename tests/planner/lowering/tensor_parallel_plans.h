// Random plans of tensor-parallel stages that the engine runs: degrees 1 to 4, unequal shares of whole parts, several units, in a
// third of the stages of unlike widths and shares, every family of schedules, ZeRO 0 to 3, recomputation by rank.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/schedule_family.h"
#include "planner/plan/unit_slices.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {

class TensorParallelPlans {
 public:
  // `any_cuts`: else all units of a stage are cut alike, and a tied embedding is whole where it lies on two stages.
  explicit TensorParallelPlans(uint64_t seed, bool any_cuts = true) : random_(seed), any_cuts_(any_cuts) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  // Up to eight cards of up to three nodes; a model of six or eight heads of keys and values, whose vocabulary and columns they
  // do not divide.
  std::unique_ptr<Setting> NextSetting(bool runnable = false) {
    static const char* const kCards[] = {"T4", "A10G", "V100-16GB", "A100-40GB"};
    std::vector<std::vector<std::string>> nodes(static_cast<size_t>(1 + Below(3)));
    const int64_t devices = std::max<int64_t>(2 + Below(7), static_cast<int64_t>(nodes.size()));
    for (int64_t d = 0; d < devices; ++d) nodes[static_cast<size_t>(d) % nodes.size()].push_back(kCards[Below(4)]);
    ModelShape model = MediumModel(3 + Below(6), Below(2) == 0);
    model.num_kv_heads = Below(2) == 0 ? 6 : 8;
    model.num_heads = model.num_kv_heads;
    if (Below(2) == 0) {
      model.family = Below(2) == 0 ? ModelFamily::kLlama : ModelFamily::kQwen2;
      model.num_heads *= 2;
    }
    model.hidden_size = model.num_heads * model.head_dim;
    model.intermediate_size = 2045;
    model.vocab_size = 8191;
    PlanRequest request;
    request.runnable = runnable;
    auto setting = Setting::Create(Nodes(nodes, Below(2) == 0 ? 12e9 : 100e9, Below(2) == 0 ? 3e9 : 25e9),
                                   WorkOf(model, 4 + Below(9)), request, nullptr);
    EXPECT_TRUE(setting.ok()) << setting.status();
    return *std::move(setting);
  }

  Plan Next(const Setting& setting) {
    const int64_t layers = setting.workload.model.num_layers, devices = setting.num_devices();
    Plan plan = PlanOf(setting, static_cast<ScheduleFamily>(Below(6)), {{}});
    const ScheduleTraits& traits = TraitsOf(plan.schedule);
    const bool in_v = traits.map == VirtualStageMap::kV;
    const bool several = plan.schedule == ScheduleFamily::kLayered || plan.schedule == ScheduleFamily::kInterleaved;
    const int64_t stages = 1 + Below(std::min({devices, in_v ? layers / 2 : layers, int64_t{4}}));
    const int64_t rounds = several ? 1 + Below(std::min<int64_t>(3, layers / stages)) : in_v && stages > 1 ? 2 : 1;
    const auto dealt = DealLayers(layers, stages, rounds, traits.map);
    const std::vector<int64_t> widths = Cut(devices, stages, 1);
    for (int64_t s = 0, first = 0; s < stages; first += widths[static_cast<size_t>(s++)]) {
      StagePlan stage;
      stage.ministages = dealt[static_cast<size_t>(s)];
      stage.zero_stage = static_cast<int>(Below(4));
      if (traits.takes_in_flight && Below(2) == 0) stage.in_flight = 1 + Below(4);
      const bool holds_end = s == 0 || s == (in_v ? 0 : stages - 1);
      const bool tied_apart = setting.workload.model.tie_embeddings && holds_end && stages > 1 && !in_v;
      AddUnits(setting, first, widths[static_cast<size_t>(s)], any_cuts_ || !tied_apart, &stage);
      DealBatch(plan, stages, rounds, &stage);
      plan.pipelines[0].stages.push_back(std::move(stage));
    }
    return plan;
  }

 private:
  // `total` in `parts` numbers of at least `least`.
  std::vector<int64_t> Cut(int64_t total, int64_t parts, int64_t least) {
    std::vector<int64_t> cuts, result;
    for (int64_t i = 1; i < parts; ++i) cuts.push_back(Below(total - least * parts + 1));
    cuts.push_back(total - least * parts);
    std::sort(cuts.begin(), cuts.end());
    for (int64_t before = 0; const int64_t cut : cuts) {
      result.push_back(cut - before + least);
      before = cut;
    }
    return result;
  }

  OpSet NextRecompute(int64_t width) {
    if (Below(2) == 0) return OpSet::None();
    if (Below(3) == 0) return OpSet::All();
    OpSet set;
    for (const Op op : {Op::kNorm1, Op::kQkv, Op::kAttention, Op::kAttnOut, Op::kUp, Op::kActivation}) {
      if (Below(2) == 0 && (width == 1 || op != Op::kAttnOut)) set = set.With(op);
    }
    return set;
  }

  // Devices that are left over compute nothing and are not in the plan.
  void AddUnits(const Setting& setting, int64_t first, int64_t devices, bool may_be_wide, StagePlan* stage) {
    const int64_t parts = setting.workload.model.num_kv_heads;
    const auto next_width = [&](int64_t left) { return may_be_wide ? 1 + Below(std::min<int64_t>(4, left)) : 1; };
    int64_t width = next_width(devices);
    std::vector<int64_t> heads = Cut(parts, width, 1);
    const bool unlike = any_cuts_ && Below(3) == 0;
    for (int64_t left = devices; left >= width;) {
      UnitPlan& unit = stage->units.emplace_back();
      for (int64_t r = 0; r < width; ++r) {
        RankPlan& rank = unit.ranks.emplace_back();
        rank.device = setting.cluster.devices[static_cast<size_t>(first++)].id;
        rank.tp_share = width == 1 ? 1 : static_cast<double>(heads[static_cast<size_t>(r)]) / static_cast<double>(parts);
        rank.recompute = NextRecompute(width);
      }
      left -= width;
      if (!unlike || left == 0) continue;
      width = next_width(left);
      heads = Cut(parts, width, 1);
    }
    std::vector<RankPlan*> ranks;
    for (UnitPlan& unit : stage->units) {
      for (RankPlan& rank : unit.ranks) ranks.push_back(&rank);
    }
    const std::vector<int64_t> shares = Cut(16, static_cast<int64_t>(ranks.size()), 0);
    for (size_t r = 0; r < ranks.size(); ++r) {
      ranks[r]->shard_ratio = stage->units.size() == 1 ? ranks[r]->tp_share : static_cast<double>(shares[r]) / 16;
    }
  }

  void DealBatch(const Plan& plan, int64_t stages, int64_t rounds, StagePlan* stage) {
    const int64_t batch = plan.global_batch, units = static_cast<int64_t>(stage->units.size());
    if (plan.schedule == ScheduleFamily::kInterleaved && stages > 1 && rounds > 1) {
      stage->units.front().microbatches = Cut(batch, stages, 1);
    } else {
      const std::vector<int64_t> batches = Cut(batch, units, 0);
      for (int64_t u = 0; u < units; ++u) {
        const int64_t own = batches[static_cast<size_t>(u)];
        if (own > 0) stage->units[static_cast<size_t>(u)].microbatches = Cut(own, 1 + Below(std::min<int64_t>(own, 4)), 1);
      }
    }
  }

  std::mt19937_64 random_;
  const bool any_cuts_;
};

inline bool AnyTensorParallel(const Plan& plan) {
  const std::vector<StagePlan>& stages = plan.pipelines[0].stages;
  return std::any_of(stages.begin(), stages.end(), IsTensorParallel);
}

}  // namespace motley::planner
