#include "planner/plan/unit_slices.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/ownership.h"
#include "planner/plan/plan_engine_limits.h"
#include "tests/planner/plan_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// Two units of three and one of four heads in a stage of two layers, a single device with the other two.
Plan PairsAndOne(const ModelShape& model) {
  Plan plan = OneStagePlan(model);
  plan.ownership.reset();
  plan.schedule = ScheduleFamily::k1F1B;
  plan.global_batch = 6;
  StagePlan pairs, one;
  pairs.ministages = {{0, 1}};
  pairs.zero_stage = 1;
  pairs.units = {{{MakeRank("n1/gpu0", "x", 0.375, 0.75), MakeRank("n1/gpu1", "x", 0.125, 0.25)}, {2, 1}},
                 {{MakeRank("n2/gpu0", "x", 0.375, 0.75), MakeRank("n2/gpu1", "x", 0.125, 0.25)}, {3}}};
  one.ministages = {{2, 3}};
  one.zero_stage = 1;
  one.units = {{{MakeRank("n4/gpu0", "x", 1)}, {3, 3}}};
  plan.unused.clear();
  plan.pipelines = {{{pairs, one}}};
  return plan;
}

std::string Refused(const ModelShape& model, const std::function<void(Plan&, StagePlan&)>& change) {
  Plan plan = PairsAndOne(model);
  change(plan, plan.pipelines[0].stages[0]);
  return std::string(Validate(plan, model).message());
}

TEST(UnitSlicesTest, UnitsCutBetweenHeadsRun) {
  const ModelShape model = SmallModel(false);
  EXPECT_EQ(Refused(model, [](Plan&, StagePlan&) {}), "");
  EXPECT_EQ(Refused(model, [](Plan&, StagePlan& s) { s.units[0].ranks[1].recompute = OpSet::All(); }), "");
  EXPECT_EQ(Refused(model, [](Plan&, StagePlan& s) { s.units[0].ranks[1].recompute = OpSet().With(Op::kUp).With(Op::kNorm2); }),
            "");
  const auto slices = SlicesOfRanks(model, PairsAndOne(model));
  ASSERT_TRUE(slices.ok()) << slices.status();
  EXPECT_EQ(*slices, (std::vector<ModelSlice>{{0, 3, 4}, {3, 4, 4}, {0, 3, 4}, {3, 4, 4}, {0, 1, 1}}));
}

TEST(UnitSlicesTest, UnitsOfAStageMayBeUnlike) {
  const ModelShape model = SmallModel(false);
  EXPECT_EQ(Refused(model, [](Plan&, StagePlan& s) { s.units[1] = {{MakeRank("n2/gpu0", "x", 0.5)}, {3}}; }), "");
  EXPECT_EQ(Refused(model, [](Plan&, StagePlan& s) { s.units[1].ranks[0].tp_share = s.units[1].ranks[1].tp_share = 0.5; }), "");
}

TEST(UnitSlicesTest, WhatCannotBeCutIsNamed) {
  const ModelShape model = SmallModel(false);
  EXPECT_THAT(Refused(model,
                      [](Plan&, StagePlan& s) {
                        for (UnitPlan& unit : s.units) unit.ranks[0].tp_share = 0.6, unit.ranks[1].tp_share = 0.4;
                      }),
              HasSubstr("pipelines[0].stages[0]: the unit of n1/gpu0: tp_share 0.6, 0.4 cut a key-value head: the model has 4"));
  const auto halves = [](Plan& p, StagePlan&) {
    p.pipelines.push_back({{p.pipelines[0].stages[0]}});
    StagePlan& whole = p.pipelines[1].stages[0];
    whole.ministages = {{0, 3}};
    for (UnitPlan& unit : whole.units) {
      for (RankPlan& rank : unit.ranks) rank.device = DeviceId("m" + rank.device.value());
    }
    p.global_batch = 12;
  };
  EXPECT_EQ(Refused(model, halves), "");
  // Widths that share no cut beside each other are run; a head that is cut is named where it is.
  const auto beside = [&](double first, double second) {
    return Refused(model, [&](Plan& p, StagePlan& s) {
      halves(p, s);
      for (UnitPlan& unit : p.pipelines[1].stages[0].units) {
        if (unit.ranks.size() == 2) unit.ranks[0].tp_share = first, unit.ranks[1].tp_share = second;
      }
    });
  };
  EXPECT_EQ(beside(0.5, 0.5), "");
  EXPECT_THAT(beside(0.6, 0.4),
              HasSubstr("pipelines[1].stages[0]: the unit of mn1/gpu0: tp_share 0.6, 0.4 cut a key-value head"));
}

TEST(UnitSlicesTest, AModelThatIsTooSmallIsNamed) {
  ModelShape model = SmallModel(false);
  model.vocab_size = 3;
  EXPECT_THAT(Refused(model, [](Plan&, StagePlan&) {}), HasSubstr("the model has 3 tokens, fewer than its 4 key-value heads"));
  model = SmallModel(false);
  model.intermediate_size = 2;
  EXPECT_THAT(Refused(model, [](Plan&, StagePlan&) {}), HasSubstr("the model has 2 columns of the MLP"));
  model = SmallModel(false);
  model.num_kv_heads = 1;
  EXPECT_THAT(Refused(model, [](Plan&, StagePlan&) {}),
              HasSubstr("tensor parallelism over 2 ranks, the model has 1 key-value heads"));
}

TEST(UnitSlicesTest, ASumIsKept) {
  const ModelShape model = SmallModel(false);
  for (const Op op : {Op::kAttnOut, Op::kResidual1}) {
    EXPECT_THAT(Refused(model, [op](Plan&, StagePlan& s) { s.units[1].ranks[0].recompute = OpSet().With(Op::kNorm1).With(op); }),
                HasSubstr("pipelines[0].stages[0]: n2/gpu0: recompute 'norm1," + std::string(OpName(op)) + "' given; " +
                          std::string(OpName(op)) + " ends in a sum over the unit's ranks"));
  }
}

TEST(UnitSlicesTest, ATiedEmbeddingMayLieOnTwoStages) {
  EXPECT_EQ(Refused(SmallModel(true), [](Plan&, StagePlan&) {}), "");
}

TEST(UnitSlicesTest, SharesThatAreRoundedAreSnapped) {
  const ModelShape model = SmallModel(false);
  Plan plan = PairsAndOne(model);
  plan.pipelines[0].stages[0].units[0].ranks[0].tp_share = 0.7496;
  plan.pipelines[0].stages[0].units[0].ranks[1].tp_share = 0.2504;
  GiveOwnership(model, &plan);
  EXPECT_EQ(plan.pipelines[0].stages[0].units[0].ranks[0].tp_share, 0.75);
  EXPECT_EQ(plan.pipelines[0].stages[0].units[0].ranks[1].tp_share, 0.25);
  EXPECT_EQ(ValidateForEngine(plan, model), absl::OkStatus());
}

// Each rank owns of its own slice, as much as its share of those who have it, and of what is not divided.
TEST(UnitSlicesTest, SlicesAreOwnedByThoseWhoHaveThem) {
  const ModelShape model = SmallModel(false);
  Plan plan = PairsAndOne(model);
  StagePlan& pairs = plan.pipelines[0].stages[0];
  pairs.units[0].ranks[0].shard_ratio = 0.5;
  pairs.units[1].ranks[0].shard_ratio = 0.25;
  const Ownership ownership = OwnershipOf(plan, model);
  const UnitSpec layer = ParameterLayout(model)[1];
  const int64_t divided = layer.divided_elements, rest = layer.num_elements - divided;
  EXPECT_EQ(ownership.NumOwned(1, 0), divided * 3 / 4 * 2 / 3 + rest / 2);
  EXPECT_EQ(ownership.NumOwned(1, 2), divided * 3 / 4 / 3 + rest / 4);
  EXPECT_EQ(ownership.NumOwned(1, 1), divided / 4 / 2 + rest / 8);
  EXPECT_EQ(ownership.Of(1).back(), (OwnedRange{3, layer.num_elements - rest / 8, layer.num_elements}));
  plan.ownership = ownership;
  EXPECT_EQ(ValidateForEngine(plan, model), absl::OkStatus());
  // Of the first matrix the queries of three heads, then of one.
  OwnedRanges ranges = ownership.Of(1);
  ASSERT_GT(ranges.size(), 4u);
  std::swap(ranges[0].rank, ranges[1].rank);
  Ownership wrong;
  for (int32_t block = 0; block < ownership.num_blocks(); ++block) wrong.Add(block == 1 ? ranges : ownership.Of(block));
  plan.ownership = wrong;
  EXPECT_THAT(std::string(Validate(plan, model).message()), HasSubstr("plan: ownership: n1/gpu1 owns elements 0 to "));
}

}  // namespace
}  // namespace motley::planner
