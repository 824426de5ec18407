#include "planner/answers/plan_diff.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/answers/state_moves.h"
#include "tests/planner/plan_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

int64_t Total(const std::vector<StateMove>& moves) {
  int64_t total = 0;
  for (const StateMove& move : moves) total += move.bytes;
  return total;
}

// One stage over these devices at these shares; ZeRO 3 unless said otherwise.
Plan Sharded(const std::vector<std::pair<std::string, double>>& shares, int zero_stage = 3) {
  Plan plan;
  plan.strategy = "manual";
  plan.global_batch = 2;
  plan.seq_len = 32;
  StagePlan stage;
  stage.ministages = {{0, 3}};
  stage.zero_stage = zero_stage;
  for (const auto& [device, share] : shares) stage.units.push_back({{MakeRank(device, "x", share)}, {}});
  stage.units[0].microbatches = {2};
  plan.pipelines = {{{stage}}};
  return plan;
}

TEST(PlanDiffTest, SaysWhatChangesDeviceByDevice) {
  const Plan before = OneStagePlan(SmallModel());
  EXPECT_TRUE(Diff(before, before).empty());
  EXPECT_EQ(ToText(Diff(before, before)), "");
  Plan after = before;
  after.strategy = "even";
  StagePlan& stage = after.pipelines[0].stages[0];
  stage.units[0].microbatches = {5};
  stage.units[1].microbatches = {4};
  stage.units[1].ranks[0].recompute = OpSet::All();
  stage.units[2].ranks[0].device = DeviceId("n4/gpu0");
  after.unused.push_back({DeviceId("n2/gpu0"), "too slow"});
  EXPECT_EQ(ToText(Diff(before, after)),
            "strategy cephalo -> even\n"
            "n1/gpu0: batch 6 = 4+2 -> 5 = 1x5\n"
            "n1/gpu1: batch 3 = 1x3 -> 4 = 1x4, recompute none -> full\n"
            "n2/gpu0: role stores -> unused (too slow)\n"
            "n4/gpu0: role not in the plan -> stores, place pipeline 0 stage 0, layers 0-3, batch 0, tensor-parallel share "
            "1.000, shard "
            "0.300, zero stage 3, in flight as the schedule says, recompute none, offload nothing\n");
}

TEST(PlanDiffTest, WhatWasNotPredictedIsNotCompared) {
  Plan before = OneStagePlan(SmallModel());
  before.predicted.step_seconds = 0.4;
  before.predicted.binding_constraint = "all-gather";
  Plan text = before;
  text.predicted = {};
  EXPECT_EQ(ToText(Diff(before, text)), "");
  EXPECT_EQ(ToText(Diff(text, before)), "");
  text.predicted.step_seconds = 0.8;
  EXPECT_THAT(ToText(Diff(before, text)), HasSubstr("step 400 ms -> 800 ms"));
}

TEST(PlanDiffTest, DevicesThatChangeAlikeAreOneLine) {
  Plan before = Sharded({{"a/gpu0", 0.25}, {"a/gpu1", 0.25}, {"a/gpu2", 0.25}, {"b/gpu0", 0.25}}), after = before;
  for (UnitPlan& unit : after.pipelines[0].stages[0].units) unit.ranks[0].offload.optimizer = true;
  EXPECT_EQ(ToText(Diff(before, after)), "a/gpu0..2,b/gpu0: offload nothing -> optimizer\n");
  before = after;
  after.pipelines[0].stages[0].prefetch = 2;
  EXPECT_EQ(ToText(Diff(before, after)), "a/gpu0..2,b/gpu0: offload optimizer -> optimizer, 2 ahead\n");
}

TEST(PlanDiffTest, MicrobatchesInFlight) {
  const Plan before = InTurnPlan();
  Plan after = before;
  after.pipelines[0].stages[0].in_flight = 0;
  after.pipelines[0].stages[1].in_flight = 2;
  EXPECT_EQ(ToText(Diff(before, after)),
            "a/gpu0..1: in flight 3 -> as the schedule says\n"
            "b/gpu0..1: in flight as the schedule says -> 2\n");
}

TEST(StateMovesTest, OnlyWhatChangesItsOwner) {
  const ModelShape model = SmallModel();
  const int64_t bytes = NumParameters(model) * 12;
  const Plan halves = Sharded({{"a/gpu0", 0.5}, {"b/gpu0", 0.5}}), quarters = Sharded({{"a/gpu0", 0.25}, {"b/gpu0", 0.75}});
  EXPECT_TRUE(FindStateMoves(halves, halves, &model)->empty());
  const auto moves = *FindStateMoves(halves, quarters, &model);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].from, DeviceId("a/gpu0"));
  EXPECT_EQ(moves[0].to, DeviceId("b/gpu0"));
  EXPECT_NEAR(static_cast<double>(moves[0].bytes), 0.25 * static_cast<double>(bytes), 12.0 * 6);
  // A newcomer gets its third from both.
  const auto joined = *FindStateMoves(halves, Sharded({{"a/gpu0", 0.5}, {"c/gpu0", 0.5}}), &model);
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0].from, DeviceId("b/gpu0"));
}

// Where nothing is sharded, too, every element has one owner, in even parts.
TEST(StateMovesTest, WithoutShardsOwnersAreEven) {
  const ModelShape model = SmallModel();
  const auto bytes = static_cast<double>(NumParameters(model) * 12);
  const Plan before = Sharded({{"a/gpu0", 1}, {"b/gpu0", 1}}, 0);
  const auto moves = *FindStateMoves(before, Sharded({{"a/gpu0", 1}, {"b/gpu0", 1}, {"b/gpu1", 1}}, 0), &model);
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].to, DeviceId("b/gpu0"));
  EXPECT_NEAR(static_cast<double>(moves[0].bytes), bytes / 6, 12.0 * 12);
  EXPECT_EQ(moves[1].from, DeviceId("b/gpu0"));
  EXPECT_EQ(moves[1].to, DeviceId("b/gpu1"));
  EXPECT_NEAR(static_cast<double>(moves[1].bytes), bytes / 3, 12.0 * 12);
  EXPECT_TRUE(FindStateMoves(Sharded({{"a/gpu0", 0.5}, {"b/gpu0", 0.5}}), before, &model)->empty());
}

TEST(StateMovesTest, StagesAndPipelines) {
  const ModelShape model = SmallModel();
  Plan two = Sharded({{"a/gpu0", 1}}), merged = Sharded({{"a/gpu0", 0.5}, {"b/gpu0", 0.5}});
  StagePlan first = two.pipelines[0].stages[0], second = first;
  first.ministages = {{0, 1}};
  second.ministages = {{2, 3}};
  second.units[0].ranks[0].device = DeviceId("b/gpu0");
  two.pipelines = {{{first, second}}};
  ASSERT_EQ(Validate(two, model), absl::OkStatus());
  // Each gives away half of what it held.
  EXPECT_NEAR(static_cast<double>(Total(*FindStateMoves(two, merged, &model))), 6.0 * static_cast<double>(NumParameters(model)),
              100);
  // Two whole replicas with the optimizer sharded between them: each owns a half already.
  Plan replicas = Sharded({{"a/gpu0", 1}});
  replicas.global_batch = 4;
  replicas.pipelines.push_back(replicas.pipelines[0]);
  replicas.pipelines[1].stages[0].units[0].ranks[0].device = DeviceId("b/gpu0");
  replicas.pipelines_zero_stage = 1;
  EXPECT_LE(Total(*FindStateMoves(replicas, merged, &model)), 12 * 6) << "rounding";
  EXPECT_EQ(Total(*FindStateMoves(FullPlan(), FullPlan(), &model)), 0);
  EXPECT_GT(Total(*FindStateMoves(FullPlan(), merged, &model)), 0);
}

TEST(StateMovesTest, SizesComeFromTheModelOrAPlacement) {
  const ModelShape model = SmallModel();
  const Plan placed = OneStagePlan(model), implied = Sharded({{"n1/gpu0", 1}});
  EXPECT_EQ(Total(*FindStateMoves(placed, implied, nullptr)), Total(*FindStateMoves(placed, implied, &model)));
  EXPECT_THAT(std::string(FindStateMoves(implied, implied, nullptr).status().message()), HasSubstr("give the model"));
  const ModelShape deeper = SmallModel(true, 5);
  EXPECT_THAT(std::string(FindStateMoves(implied, implied, &deeper).status().message()),
              HasSubstr("the model has 5 layers, the plans 4"));
  Plan shallow = implied;
  shallow.pipelines[0].stages[0].ministages = {{0, 2}};
  EXPECT_THAT(std::string(FindStateMoves(implied, shallow, &model).status().message()),
              HasSubstr("plans are of different models"));
}

TEST(StateMovesTest, PlansOfNoShapeAreRefused) {
  const Plan good = OneStagePlan(SmallModel());
  const auto refused = [&](auto&& change) {
    Plan bad = good;
    change(bad, bad.pipelines[0].stages[0]);
    EXPECT_EQ(FindStateMoves(good, bad, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(FindStateMoves(bad, good, nullptr).status().message());
  };
  EXPECT_THAT(refused([](Plan& p, StagePlan&) { p.pipelines.clear(); }), HasSubstr("pipelines: empty"));
  EXPECT_THAT(refused([](Plan& p, StagePlan&) { p.pipelines[0].stages.clear(); }), HasSubstr("stages: empty"));
  EXPECT_THAT(refused([](Plan&, StagePlan& s) { s.ministages.clear(); }), HasSubstr("without ministages"));
  EXPECT_THAT(refused([](Plan&, StagePlan& s) { s.ministages = {{0, int64_t{1} << 60}}; }), HasSubstr("no ranges of layers"));
  EXPECT_THAT(refused([](Plan&, StagePlan& s) { s.ministages = {{-1, 3}}; }), HasSubstr("no ranges of layers"));
  EXPECT_THAT(refused([](Plan& p, StagePlan&) { p.ownership->Add({{0, 0, 1}}); }), HasSubstr("of 7 blocks, the model has 6"));
  EXPECT_THAT(refused([](Plan&, StagePlan& s) { s.units.resize(2); }), HasSubstr("are of rank 2, there are 2"));
}

}  // namespace
}  // namespace motley::planner
