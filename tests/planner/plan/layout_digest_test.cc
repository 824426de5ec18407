#include "planner/plan/layout_digest.h"

#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace motley::planner {
namespace {

Plan TwoRanks() {
  Plan plan;
  plan.schedule = ScheduleFamily::k1F1B;
  plan.pipelines.resize(1);
  StagePlan& stage = plan.pipelines[0].stages.emplace_back();
  stage.ministages = {{0, 3}};
  for (const char* device : {"node-of-a-long-name/gpu0", "node-of-a-long-name/gpu1"}) {
    UnitPlan& unit = stage.units.emplace_back();
    unit.microbatches = {2, 2};
    unit.ranks.emplace_back().device = DeviceId(device);
    unit.ranks[0].shard_ratio = 0.5;
  }
  return plan;
}

TEST(LayoutDigestTest, WhateverARankDoesCounts) {
  using Change = std::function<void(Plan&)>;
  const auto stage = [](Plan& plan) -> StagePlan& { return plan.pipelines[0].stages[0]; };
  const auto rank = [stage](Plan& plan) -> RankPlan& { return stage(plan).units[1].ranks[0]; };
  const std::vector<Change> changes = {
      [](Plan& plan) { plan.schedule = ScheduleFamily::kZeroBubble; },
      [](Plan& plan) { plan.pipelines_zero_stage = 1; },
      [](Plan& plan) { plan.pipelines.push_back(plan.pipelines[0]); },
      [&](Plan& plan) { plan.pipelines[0].stages.push_back(stage(plan)); },
      [&](Plan& plan) {
        stage(plan).ministages = {{0, 1}, {2, 3}};
      },
      [&](Plan& plan) { stage(plan).ministages[0].last = 4; },
      [&](Plan& plan) { stage(plan).zero_stage = 1; },
      [&](Plan& plan) { stage(plan).in_flight = 2; },
      [&](Plan& plan) { stage(plan).prefetch = 2; },
      [&](Plan& plan) { std::swap(stage(plan).units[0], stage(plan).units[1]); },
      [&](Plan& plan) {
        stage(plan).units[1].microbatches = {2, 1, 1};
      },
      [&](Plan& plan) { stage(plan).units[1].microbatches = {4}; },
      [&](Plan& plan) { stage(plan).units[1].ranks.push_back(rank(plan)); },
      [&](Plan& plan) { rank(plan).device = DeviceId("node-of-a-long-name/gpu2"); },
      [&](Plan& plan) { rank(plan).recompute = OpSet().With(Op::kNorm1); },
      [&](Plan& plan) { rank(plan).recompute = OpSet::All(); },
      [&](Plan& plan) { rank(plan).shard_ratio = 0.5 + 1e-16 * 4; },
      [&](Plan& plan) { rank(plan).tp_share = 0.5; },
      [&](Plan& plan) { rank(plan).offload.activations = true; },
      [&](Plan& plan) { rank(plan).offload.parameters = true; },
      [&](Plan& plan) { rank(plan).offload.optimizer = true; },
      [&](Plan& plan) { rank(plan).offload.gradients = true; },
      [&](Plan& plan) { plan.optimizer_steps = OptimizerSteps::kInTurn; },
  };
  std::vector<LayoutDigest> digests = {DigestOf(TwoRanks())};
  for (size_t i = 0; i < changes.size(); ++i) {
    Plan plan = TwoRanks();
    changes[i](plan);
    const LayoutDigest digest = DigestOf(plan);
    for (size_t other = 0; other < digests.size(); ++other) EXPECT_FALSE(digest == digests[other]) << i << " and " << other;
    digests.push_back(digest);
  }
}

TEST(LayoutDigestTest, WhoFoundThePlanAndWhatIsPredictedDoNot) {
  Plan other = TwoRanks();
  other.strategy = "zorse";
  other.cluster = "lab";
  other.predicted.step_seconds = 3;
  other.unused.push_back({DeviceId("n/gpu0"), "slow"});
  RankPlan& rank = other.pipelines[0].stages[0].units[0].ranks[0];
  rank.device_model = "T4";
  rank.predicted.busy_seconds = 2;
  EXPECT_EQ(DigestOf(other), DigestOf(TwoRanks()));
}

}  // namespace
}  // namespace motley::planner
