// No plan that the simulator prices comes below the bound: strategies' plans, and random ones of the whole language.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/cluster/cluster_file.h"
#include "planner/plan/virtual_stages.h"
#include "planner/pricing/evaluate.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using Random = std::mt19937;

int64_t Pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

std::unique_ptr<Setting> Make(const std::string& toml, int64_t batch, int64_t layers, int64_t hidden) {
  absl::StatusOr<Cluster> cluster = ParseCluster(toml, "lab");
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  Workload workload;
  workload.model_name = "small";
  workload.model = SmallModel(true, layers);
  workload.model.hidden_size = hidden;
  workload.model.head_dim = hidden / workload.model.num_heads;
  workload.model.intermediate_size = 4 * hidden;
  workload.global_batch = batch;
  workload.seq_len = 128;
  absl::StatusOr<std::unique_ptr<Setting>> setting = Setting::Create(*std::move(cluster), workload, {}, nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

// `total` as `parts` numbers of at least `least`.
std::vector<int64_t> Cut(Random& random, int64_t total, int64_t parts, int64_t least) {
  std::vector<int64_t> cut(static_cast<size_t>(parts), least);
  for (int64_t rest = total - parts * least; rest > 0; --rest) ++cut[Pick(random, 0, parts - 1)];
  return cut;
}

StagePlan RandomStage(Random& random, const Setting& setting, const std::vector<int>& devices, int64_t batch) {
  StagePlan stage;
  stage.zero_stage = static_cast<int>(Pick(random, 0, 3));
  for (size_t d = 0; d < devices.size();) {
    UnitPlan& unit = stage.units.emplace_back();
    const size_t ranks = std::min(devices.size() - d, static_cast<size_t>(Pick(random, 1, 2)));
    for (size_t r = 0; r < ranks; ++r, ++d) {
      RankPlan& rank = unit.ranks.emplace_back();
      rank.device = setting.cluster.devices[devices[d]].id;
      rank.tp_share = 1.0 / static_cast<double>(ranks);
      rank.shard_ratio = 1.0 / static_cast<double>(devices.size());
      rank.recompute = Pick(random, 0, 1) == 0 ? OpSet::None() : OpSet::All();
    }
  }
  const std::vector<int64_t> batches = Cut(random, batch, static_cast<int64_t>(stage.units.size()), 0);
  for (size_t u = 0; u < batches.size(); ++u) {
    for (int64_t rest = batches[u]; rest > 0;) {
      const int64_t m = Pick(random, 1, rest);
      stage.units[u].microbatches.push_back(m);
      rest -= m;
    }
  }
  return stage;
}

Plan RandomPlan(Random& random, const Setting& setting) {
  constexpr ScheduleFamily kSchedules[] = {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::k1F1B,
                                           ScheduleFamily::kZeroBubble};
  const int64_t batch = setting.workload.global_batch, layers = setting.workload.model.num_layers;
  Plan plan;
  plan.global_batch = batch;
  plan.seq_len = setting.workload.seq_len;
  plan.dtype = setting.workload.dtype;
  plan.schedule = kSchedules[Pick(random, 0, 3)];
  plan.pipelines_zero_stage = static_cast<int>(Pick(random, 0, 2));
  std::vector<int> devices(static_cast<size_t>(setting.num_devices()));
  for (size_t d = 0; d < devices.size(); ++d) devices[d] = static_cast<int>(d);
  std::shuffle(devices.begin(), devices.end(), random);
  devices.resize(static_cast<size_t>(Pick(random, 1, setting.num_devices())));
  const int64_t pipelines = std::min<int64_t>({Pick(random, 1, 2), batch, static_cast<int64_t>(devices.size())});
  const std::vector<int64_t> widths = Cut(random, static_cast<int64_t>(devices.size()), pipelines, 1);
  const std::vector<int64_t> batches = Cut(random, batch, pipelines, 1);
  auto next = devices.begin();
  for (size_t p = 0; p < widths.size(); ++p) {
    PipelinePlan& pipeline = plan.pipelines.emplace_back();
    const int64_t stages = Pick(random, 1, std::min(widths[p], layers));
    const std::vector<int64_t> stage_widths = Cut(random, widths[p], stages, 1), stage_layers = Cut(random, layers, stages, 1);
    int64_t layer = 0;
    for (size_t s = 0; s < stage_widths.size(); ++s) {
      const std::vector<int> own(next, next + stage_widths[s]);
      next += stage_widths[s];
      pipeline.stages.push_back(RandomStage(random, setting, own, batches[p]));
      pipeline.stages.back().ministages = {{layer, layer + stage_layers[s] - 1}};
      layer += stage_layers[s];
    }
  }
  return plan;
}

// The same devices with two ministages a stage in a V. False: there are too few layers.
bool PutInAV(int64_t layers, Plan* plan) {
  plan->schedule = ScheduleFamily::kZeroBubbleV;
  for (PipelinePlan& pipeline : plan->pipelines) {
    const auto pieces = 2 * static_cast<int64_t>(pipeline.stages.size());
    if (pieces == 2) continue;
    if (layers < pieces) return false;
    for (StagePlan& stage : pipeline.stages) stage.ministages.clear();
    int64_t i = 0;
    for (const VirtualStage& v : MappedStages(VirtualStageMap::kV, pipeline.stages.size(), 2)) {
      pipeline.stages[v.stage].ministages.push_back({layers * i / pieces, layers * (i + 1) / pieces - 1});
      ++i;
    }
  }
  return true;
}

TEST(LowerBoundPlans, RandomPlansAreNeverBelow) {
  Random random(7);
  int priced = 0;
  double closest = 1e9;
  for (const double nic : {1e-3, 1e-2, 0.1, 1.0, 10.0}) {
    const std::unique_ptr<Setting> setting =
        Make(absl::StrCat(
                 "[defaults]\nnic_gb_per_second = ", nic,
                 "\n[[node]]\ngpus = [\"A6000\", \"L4\"]\n[[node]]\ngpus = [\"P40\", \"T4\"]\n[[node]]\ngpus = [\"A6000\"]\n"),
             Pick(random, 2, 24), Pick(random, 2, 6), 256);
    const LowerBound bound = FindLowerBound(*setting);
    for (int i = 0; i < 400; ++i) {
      Plan plan = RandomPlan(random, *setting);
      ASSERT_TRUE(Validate(plan, setting->workload.model).ok()) << Validate(plan, setting->workload.model);
      const absl::StatusOr<Evaluation> evaluation = Evaluate(*setting, plan);
      ASSERT_TRUE(evaluation.ok()) << evaluation.status() << "\n" << ToText(plan);
      const double seconds = evaluation->plan.predicted.step_seconds;
      ASSERT_GE(seconds, bound.seconds) << bound.because << "\n" << ToText(evaluation->plan);
      closest = std::min(closest, seconds / bound.seconds);
      ++priced;
      if (!PutInAV(setting->workload.model.num_layers, &plan)) continue;
      ASSERT_TRUE(Validate(plan, setting->workload.model).ok()) << Validate(plan, setting->workload.model);
      const absl::StatusOr<Evaluation> in_v = Evaluate(*setting, plan);
      ASSERT_TRUE(in_v.ok()) << in_v.status() << "\n" << ToText(plan);
      ASSERT_GE(in_v->plan.predicted.step_seconds, bound.seconds) << bound.because << "\n" << ToText(in_v->plan);
    }
  }
  EXPECT_EQ(priced, 2000);
  EXPECT_LT(closest, 3);  // else the bound would say nothing
}

TEST(LowerBoundPlans, StrategiesAreNeverBelow) {
  for (const char* preset : {"cephalo-a", "poplar-b", "gaming-lab"}) {
    Workload workload;
    workload.model_name = "small";
    workload.model = SmallModel(true, 8);
    workload.model.hidden_size = workload.model.intermediate_size = 1024;
    workload.model.head_dim = 256;
    workload.global_batch = 64;
    workload.seq_len = 128;
    const auto setting = Setting::Create(*LoadCluster(preset), workload, {}, nullptr);
    ASSERT_TRUE(setting.ok()) << setting.status();
    const LowerBound bound = FindLowerBound(**setting);
    for (const CatalogEntry& strategy : Catalog()) {
      const absl::StatusOr<Plan> plan = strategy.plan(**setting);
      if (!plan.ok()) continue;  // does not fit; its own tests say when that is right
      const absl::StatusOr<Evaluation> evaluation = Evaluate(**setting, *plan);
      ASSERT_TRUE(evaluation.ok()) << strategy.name << ": " << evaluation.status();
      EXPECT_GE(evaluation->plan.predicted.step_seconds, bound.seconds)
          << preset << " " << strategy.name << ": " << bound.because;
    }
  }
}

}  // namespace
}  // namespace motley::planner
