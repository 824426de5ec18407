// One stage, layered: the lowering of plans and the live lowering (live/layered.h with live/simulator.h) must say the same.
#include <numeric>

#include "gtest/gtest.h"
#include "planner/live/planner.h"
#include "planner/lowering/step_lowering_flows.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

// The live planner's input whose profiles say what the setting's costs and links say for a plan with these shares.
PlannerInput LiveInput(const Setting& setting, const std::vector<double>& shares) {
  PlannerInput input;
  const Costs& costs = setting.costs;
  input.model = setting.workload.model;
  input.config.training.global_batch_size = setting.workload.global_batch;
  input.config.training.seq_len = setting.workload.seq_len;
  input.config.training.dtype = std::string(DTypeName(setting.workload.dtype));
  input.config.data.validation_samples = 0;
  std::vector<int> devices(setting.cluster.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  for (const int d : devices) {
    const int kind = setting.KindOf(d);
    DeviceDescription device;
    device.id = setting.cluster.devices[static_cast<size_t>(d)].id;
    device.memory_bytes = int64_t{1} << 40;
    input.devices.push_back(device);
    ComputeProfile profile;
    profile.device = device.id;
    profile.context_bytes = costs.ContextBytes(kind);
    profile.optimizer_seconds_per_element = costs.OptimizerSeconds(kind, 1e9) / 1e9;
    for (const auto& [unit, into] : {std::pair{UnitKind::kEmbedding, &profile.embedding},
                                     std::pair{UnitKind::kLayer, &profile.layer}, std::pair{UnitKind::kHead, &profile.head}}) {
      for (int64_t m = 1; m <= 8; ++m) {
        const auto samples = static_cast<double>(m);
        const int64_t input_bytes = unit == UnitKind::kEmbedding ? 0 : costs.BoundaryBytes(samples);
        into->points.push_back({m, costs.ForwardSeconds(kind, unit, samples), costs.BackwardSeconds(kind, unit, samples),
                                costs.SavedBytes(unit, OpSet::None(), samples) + input_bytes,
                                costs.WorkspaceBytes(unit, samples)});
      }
    }
    input.compute.push_back(profile);
    input.collectives.devices.push_back(device.id);
  }
  const double skew = *std::max_element(shares.begin(), shares.end());
  for (const UnitKind unit : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead}) {
    const int64_t bytes = costs.UnitElements(unit) * costs.element_bytes();
    const auto seconds = [&](Collective c) {
      return setting.links.SecondsAlone(setting.links.Ring(c, devices, static_cast<double>(bytes), shares));
    };
    input.collectives.points.push_back({bytes, skew, seconds(Collective::kAllGather), seconds(Collective::kReduceScatter)});
  }
  input.collectives.barrier_seconds = setting.links.TreeSeconds(devices);
  return input;
}

struct Duty {
  double share = 0;
  std::vector<int64_t> microbatches;
  std::string recompute;
};

void ExpectAgreement(const Setting& setting, const std::vector<Duty>& duties) {
  const int64_t layers = setting.workload.model.num_layers;
  StagePlan stage;
  std::vector<double> shares;
  for (size_t u = 0; u < duties.size(); ++u) {
    RankPlan rank;
    rank.device = setting.cluster.devices[u].id;
    rank.shard_ratio = duties[u].share;
    rank.recompute = duties[u].recompute;
    shares.push_back(duties[u].share);
    stage.units.push_back({{rank}, duties[u].microbatches});
  }
  stage.ministages = {{0, layers - 1}};
  stage.placement = PlaceByShares(setting.costs.layout(), shares);
  Plan whole = PlanOf(setting, ScheduleFamily::kLayered, {{{stage}}});
  const auto live = PricePlan(LiveInput(setting, shares), whole);
  ASSERT_TRUE(live.ok()) << live.status();
  stage.ministages.clear();
  for (int64_t l = 0; l < layers; ++l) stage.ministages.push_back({l, l});
  for (const Plan& plan : {whole, PlanOf(setting, ScheduleFamily::kLayered, {{{stage}}})}) {
    const auto offline = Evaluate(setting, plan);
    ASSERT_TRUE(offline.ok()) << offline.status();
    const double step = live->plan.predicted.step_seconds;
    EXPECT_NEAR(offline->plan.predicted.step_seconds, step, 1e-6 * step);
    for (size_t u = 0; u < duties.size(); ++u) {
      const RankPrediction& expected = live->plan.pipelines[0].stages[0].units[u].ranks[0].predicted;
      const RankPrediction& actual = offline->plan.pipelines[0].stages[0].units[u].ranks[0].predicted;
      EXPECT_NEAR(actual.busy_seconds, expected.busy_seconds, 1e-6 * step) << u;
      EXPECT_NEAR(static_cast<double>(actual.peak_bytes), static_cast<double>(expected.peak_bytes), 256) << u;
      EXPECT_EQ(actual.memory.total(), actual.peak_bytes) << u;
    }
  }
}

TEST(LiveAgreementTest, UnevenBatchesSharesAndRecomputation) {
  for (const bool tied : {false, true}) {
    for (const double nic : {0.2e9, 3e9, 100e9}) {  // bound by the network, by both, by compute
      SCOPED_TRACE(testing::Message() << "tied " << tied << ", NIC " << nic);
      const auto setting = MakeSetting(Nodes({{"A10G", "T4"}, {"V100-16GB"}}, 12e9, nic), WorkOf(MediumModel(6, tied), 20));
      ExpectAgreement(*setting, {{0.5, {4, 4, 3}, "full"}, {0.2, {2, 1}, "none"}, {0.3, {3, 3}, "none"}});
      ExpectAgreement(*setting, {{1, {5, 5}, "none"}, {0, {4, 3, 3}, "full"}, {0, {}, "none"}});
    }
  }
}

TEST(LiveAgreementTest, RandomDuties) {
  RandomPlans random(3);
  for (int i = 0; i < 60; ++i) {
    const int64_t layers = 1 + random.Below(6);
    std::vector<Duty> duties(3);
    int64_t batch = 0;
    double sum = 0;
    for (Duty& duty : duties) {
      const int64_t own = &duty == &duties[0] ? 1 + random.Below(8) : random.Below(9);
      duty.microbatches = Microbatches(own, 1 + random.Below(8));
      duty.share = 0.05 + static_cast<double>(random.Below(100));
      duty.recompute = random.Below(2) == 0 ? "none" : "full";
      batch += own;
      sum += duty.share;
    }
    for (Duty& duty : duties) duty.share /= sum;
    const double nic = 1e9 * static_cast<double>(1 + random.Below(30));
    ExpectAgreement(
        *MakeSetting(Nodes({{"A10G", "T4"}, {"A100-40GB"}}, 12e9, nic), WorkOf(MediumModel(layers, random.Below(2) == 0), batch)),
        duties);
  }
}

}  // namespace
}  // namespace motley::planner
