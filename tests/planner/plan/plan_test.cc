// The rules of the plan language, one by one: messages name the rank and the rule.
#include "planner/plan/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/placement.h"
#include "tests/planner/plan_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

template <typename F>
std::string Broken(Plan plan, F&& break_it) {
  break_it(plan);
  return std::string(Validate(plan, SmallModel()).message());
}

TEST(PlanTest, GoodPlansPass) {
  EXPECT_EQ(Validate(OneStagePlan(SmallModel()), SmallModel()), absl::OkStatus());
  EXPECT_EQ(Validate(FullPlan(), SmallModel()), absl::OkStatus());
  EXPECT_EQ(ValidateForEngine(OneStagePlan(SmallModel()), SmallModel()), absl::OkStatus());
}

TEST(PlanTest, ScheduleNamesRoundTrip) {
  for (const ScheduleFamily family : {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::k1F1B,
                                      ScheduleFamily::kInterleaved, ScheduleFamily::kZeroBubble, ScheduleFamily::kZeroBubbleV}) {
    EXPECT_EQ(*ParseSchedule(ScheduleName(family)), family);
  }
  EXPECT_THAT(std::string(ParseSchedule("gpip").status().message()), HasSubstr("did you mean 'gpipe'?"));
}

TEST(PlanTest, HeaderRules) {
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.schema_version = 6; }), HasSubstr("schema_version 6 is not known"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.global_batch = 0; }), HasSubstr("global_batch must be in 1.."));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.global_batch = int64_t{1} << 62; }), HasSubstr("global_batch must be in 1.."));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.seq_len = 4096; }), HasSubstr("seq_len must be in 1..128"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.pipelines_zero_stage = 3; }),
              HasSubstr("pipelines_zero_stage must be 0, 1 or 2"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.pipelines.clear(); }), HasSubstr("pipelines: empty"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.pipelines[1].stages.clear(); }), HasSubstr("pipeline 1: stages: empty"));
}

TEST(PlanTest, MinistagesCoverEveryLayerOnceRoundRobin) {
  const auto broken = [](auto&& change) {
    return Broken(FullPlan(), [&](Plan& p) { change(p.pipelines[0].stages[0].ministages, p.pipelines[0].stages[1].ministages); });
  };
  using Ranges = std::vector<LayerRange>;
  EXPECT_THAT(broken([](Ranges& a, Ranges&) {
                a[1] = {3, 3};
              }),
              HasSubstr("pipeline 0 stage 0: ministages[1] is layers 3-3 where layer 2 of 0-3 comes next"));
  EXPECT_THAT(broken([](Ranges& a, Ranges& b) { std::swap(a, b); }),
              HasSubstr("stage 0: ministages[0] is layers 1-1 where layer 0"));
  EXPECT_THAT(broken([](Ranges&, Ranges& b) { b[1] = {3, 4}; }), HasSubstr("where layer 3 of 0-3 comes next"));
  EXPECT_THAT(broken([](Ranges&, Ranges& b) { b[1] = {3, 2}; }), HasSubstr("layers 3-2"));
  EXPECT_THAT(broken([](Ranges&, Ranges& b) { b.pop_back(); }), HasSubstr("pipeline 0 stage 1: 1 ministages, stage 0 has 2"));
  EXPECT_THAT(broken([](Ranges&, Ranges& b) { b.clear(); }), HasSubstr("a stage holds at least one layer"));
  EXPECT_THAT(broken([](Ranges& a, Ranges& b) { a = {{0, 0}}, b = {{1, 2}}; }), HasSubstr("ministages end before layer 3"));
}

TEST(PlanTest, RanksUnitsAndStages) {
  const auto broken = [](auto&& change) {
    return Broken(FullPlan(), [&](Plan& p) { change(p.pipelines[0].stages[0], p.pipelines[0].stages[1]); });
  };
  using S = StagePlan;
  EXPECT_THAT(broken([](S& a, S&) { a.units[0].ranks[1].device = DeviceId(); }),
              HasSubstr("rank 1 in pipeline 0 stage 0: device"));
  EXPECT_THAT(broken([](S&, S& b) { b.units[1].ranks[0].shard_ratio = -0.1; }),
              HasSubstr("rank 3 (b/gpu1): shard_ratio must be in 0..1"));
  EXPECT_THAT(broken([](S&, S& b) { b.units[1].ranks[0].shard_ratio = std::nan(""); }),
              HasSubstr("rank 3 (b/gpu1): shard_ratio"));
  EXPECT_THAT(broken([](S&, S& b) { b.units[1].ranks[0].shard_ratio = 0.5; }),
              HasSubstr("pipeline 0 stage 1: shard_ratio adds up to"));
  EXPECT_THAT(broken([](S& a, S&) { a.units[0].ranks[1].tp_share = 0.3; }),
              HasSubstr("the unit of rank 0 (a/gpu0): tp_share adds up to 1.05 over its 2 ranks, it must be 1"));
  EXPECT_THAT(broken([](S& a, S&) { a.units[0].ranks[1].tp_share = 0; }), HasSubstr("rank 1 (a/gpu1): tp_share must be above 0"));
  EXPECT_THAT(broken([](S&, S& b) { b.units[0].ranks[0].tp_share = 0.5; }),
              HasSubstr("rank 2 (b/gpu0): tp_share is 0.5 but the unit"));
  EXPECT_THAT(broken([](S&, S& b) { b.units[0].ranks.clear(); }), HasSubstr("pipeline 0 stage 1: units[0] has no ranks"));
  EXPECT_THAT(broken([](S&, S& b) { b.units.clear(); }), HasSubstr("pipeline 0 stage 1: units: empty"));
  EXPECT_THAT(broken([](S&, S& b) { b.zero_stage = 4; }), HasSubstr("pipeline 0 stage 1: zero_stage must be 0, 1, 2 or 3"));
}

TEST(PlanTest, ZeroStageZeroNeedsNoShares) {
  Plan plan = FullPlan();
  plan.pipelines[0].stages[1].zero_stage = 0;
  plan.pipelines[0].stages[1].units[0].ranks[0].shard_ratio = 1;
  plan.pipelines[0].stages[1].units[1].ranks[0].shard_ratio = 1;
  EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
}

TEST(PlanTest, BatchesAddUp) {
  const auto batches = [](Plan& p, size_t stage) -> std::vector<int64_t>& {
    return p.pipelines[0].stages[stage].units[0].microbatches;
  };
  EXPECT_THAT(
      Broken(FullPlan(),
             [&](Plan& p) {
               batches(p, 1) = {2, 2};
             }),
      HasSubstr("pipeline 0 stage 1 computes 7 samples, stage 0 8; every stage of a pipeline computes the pipeline's batch"));
  EXPECT_THAT(Broken(FullPlan(), [&](Plan& p) { batches(p, 1) = {0}; }),
              HasSubstr("rank 2 (b/gpu0): microbatches must be at least 1"));
  EXPECT_THAT(Broken(FullPlan(), [&](Plan& p) { batches(p, 1) = {int64_t{1} << 62}; }),
              HasSubstr("is more than the global batch of 12"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.global_batch = 13; }), HasSubstr("add up to 12, the global batch is 13"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.global_batch = 8; }), HasSubstr("add up to at least 12, the global batch is 8"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.pipelines[1].stages[0].units[0].microbatches.clear(); }),
              HasSubstr("pipeline 1 has no microbatches; list its devices as unused"));
}

TEST(PlanTest, OneRankForEachDevice) {
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.pipelines[1].stages[0].units[0].ranks[0].device = DeviceId("a/gpu1"); }),
              HasSubstr("rank 4 (a/gpu1): the device is there twice, in pipeline 0 stage 0 and in pipeline 1 stage 0; it "
                        "computes in one place"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.unused[0].device = DeviceId("a/gpu1"); }),
              HasSubstr("unused: a/gpu1 is there twice"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.unused[0].device = DeviceId(); }), HasSubstr("unused: device is missing"));
}

// Each pipeline is a replica of one model and has its own part of one batch.
TEST(PlanTest, WhatIsWrongWithOnePipelineOfSeveralIsSaidOfThatOne) {
  const auto broken = [](auto&& change) { return Broken(FullPlan(), [&](Plan& p) { change(p.pipelines[1].stages[0]); }); };
  using S = StagePlan;
  EXPECT_EQ(broken([](S& s) { s.ministages = {{0, 3}}; }), "");
  EXPECT_THAT(
      broken([](S& s) {
        s.ministages = {{0, 2}};
      }),
      HasSubstr("pipeline 1: ministages end before layer 3, the model has 4 layers; every pipeline computes all of them"));
  EXPECT_THAT(broken([](S& s) {
                s.ministages = {{1, 3}};
              }),
              HasSubstr("pipeline 1 stage 0: ministages[0] is layers 1-3 where layer 0 of 0-3 comes next"));
  EXPECT_THAT(broken([](S& s) {
                s.ministages = {{0, 4}};
              }),
              HasSubstr("pipeline 1 stage 0: ministages[0] is layers 0-4 where layer 0 of 0-3 comes next"))
      << "a larger model";
  EXPECT_THAT(broken([](S& s) {
                s.units[0].microbatches = {2, 1};
              }),
              HasSubstr("add up to 11, the global batch is 12 (pipeline 0: 8, pipeline 1: 3)"));
  EXPECT_THAT(broken([](S& s) {
                s.units[0].microbatches = {4, 1};
              }),
              HasSubstr("add up to at least 13, the global batch is 12 (pipeline 0: 8, pipeline 1: 5)"));
}

TEST(PlanTest, SchedulesHaveRulesOfTheirOwn) {
  for (const ScheduleFamily family : {ScheduleFamily::kGPipe, ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
    EXPECT_THAT(Broken(FullPlan(), [=](Plan& p) { p.schedule = family; }),
                HasSubstr("runs exactly 1, use layered or interleaved for several"));
    Plan plan = FullPlan();
    plan.schedule = family;
    plan.pipelines[0].stages[0].ministages = {{0, 1}};
    plan.pipelines[0].stages[1].ministages = {{2, 3}};
    EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
  }
  Plan plan = FullPlan();
  plan.schedule = ScheduleFamily::kInterleaved;
  EXPECT_THAT(Broken(plan, [](Plan&) {}), HasSubstr("the unit of b/gpu1 has 1 microbatches; schedule interleaved runs as many"));
  plan.pipelines[0].stages[1].units[0].microbatches = {4, 1};
  plan.pipelines[0].stages[1].units[1].microbatches = {2, 1};
  EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
  // Whoever comes first may compute nothing.
  plan.pipelines[0].stages[0].units.insert(plan.pipelines[0].stages[0].units.begin(), plan.pipelines[0].stages[0].units[0]);
  UnitPlan& storing = plan.pipelines[0].stages[0].units[0];
  storing.microbatches.clear();
  for (RankPlan& rank : storing.ranks) {
    rank.device = DeviceId("z/" + rank.device.value());
    rank.shard_ratio = 0;
  }
  EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
}

TEST(PlanTest, ZeroBubbleVLiesInAV) {
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.schedule = ScheduleFamily::kZeroBubbleV; }),
              HasSubstr("pipeline 0 stage 1: ministages[1] is layers 3-3 where layer 2 of 0-3 comes next"));
  EXPECT_THAT(Broken(InTurnPlan(),
                     [](Plan& p) {
                       p.schedule = ScheduleFamily::kZeroBubbleV;
                       p.pipelines[0].stages[0].in_flight = 0;
                     }),
              HasSubstr("1 ministages a stage; schedule zb_v runs exactly 2"));
  Plan plan = FullPlan();
  plan.schedule = ScheduleFamily::kZeroBubbleV;
  plan.pipelines[0].stages[0].ministages = {{0, 0}, {3, 3}};
  plan.pipelines[0].stages[1].ministages = {{1, 1}, {2, 2}};
  EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
}

TEST(PlanTest, OnlySchedulesInTurnChooseWhatIsInFlight) {
  EXPECT_EQ(Validate(InTurnPlan(), SmallModel()), absl::OkStatus());
  EXPECT_THAT(Broken(InTurnPlan(), [](Plan& p) { p.pipelines[0].stages[1].in_flight = -1; }),
              HasSubstr("pipeline 0 stage 1: in_flight must be at least 1, or 0 for the schedule's own, got -1"));
  Plan plan = InTurnPlan();
  plan.schedule = ScheduleFamily::kZeroBubble;
  EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
  for (const ScheduleFamily family : {ScheduleFamily::kLayered, ScheduleFamily::kGPipe}) {
    EXPECT_THAT(Broken(InTurnPlan(), [=](Plan& p) { p.schedule = family; }),
                HasSubstr("pipeline 0 stage 0: in_flight given, but the schedule is " + std::string(ScheduleName(family)) +
                          "; only 1f1b and zero_bubble choose"));
  }
}

TEST(PlanTest, EveryElementHasOneOwnerThatComputesWithIt) {
  const ModelShape model = SmallModel();
  const std::vector<int64_t> elements = UnitElements(ParameterLayout(model));
  // Of all blocks the same ranks own the same parts, but of block `changed` these.
  const auto owned = [&](Plan& p, int32_t changed, OwnedRanges ranges) {
    Ownership ownership;
    for (int32_t block = 0; block < p.ownership->num_blocks(); ++block) {
      ownership.Add(block == changed ? ranges : p.ownership->Of(block));
    }
    p.ownership = ownership;
  };
  const auto broken = [&](auto&& change) { return Broken(OneStagePlan(model), change); };
  const int64_t n = elements[2];
  EXPECT_EQ(broken([&](Plan& p) { owned(p, 2, {{3, 0, 5}, {0, 5, n - 7}, {3, n - 7, n}}); }), "");
  EXPECT_EQ(broken([](Plan& p) { p.ownership.reset(); }), "");
  EXPECT_THAT(broken([&](Plan& p) {
                owned(p, 2, {{0, 0, 5}, {1, 6, n}});
              }),
              HasSubstr("elements 5 to 6 of block 2 have no owner"));
  EXPECT_THAT(broken([&](Plan& p) { owned(p, 2, {{0, 0, n - 1}}); }), HasSubstr("of block 2 have no owner"));
  EXPECT_THAT(broken([&](Plan& p) {
                owned(p, 2, {{0, 0, 9}, {1, 5, n}});
              }),
              HasSubstr("elements 5 to 9 of block 2 have two owners, rank 0 and rank 1"));
  EXPECT_THAT(broken([&](Plan& p) { owned(p, 2, {{0, 0, n + 1}}); }), HasSubstr("do not exist"));
  EXPECT_THAT(broken([&](Plan& p) { owned(p, 2, {{4, 0, n}}); }), HasSubstr("are of rank 4, there are 4"));
  EXPECT_THAT(broken([&](Plan& p) { owned(p, 2, {{0, 0, 9}, {1, 12, 9}, {2, 9, n}}); }), HasSubstr("are no range"));
  EXPECT_THAT(broken([&](Plan& p) { p.ownership->Add({{0, 0, 1}}); }), HasSubstr("of 7 blocks, the model has 6"));
  EXPECT_THAT(broken([](Plan& p) { p.pipelines[0].stages[0].zero_stage = 0; }), HasSubstr("zero_stage 0"));
}

TEST(PlanTest, ARankOwnsNothingOfAnotherStagesBlocks) {
  Plan plan = FullPlan();
  const std::vector<int64_t> elements = UnitElements(ParameterLayout(SmallModel()));
  GiveOwnership(SmallModel(), &plan);
  EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
  Ownership ownership;
  for (int32_t block = 0; block < 5; ++block) ownership.Add(plan.ownership->Of(block));
  ownership.Add({{0, 0, elements[5]}});
  plan.ownership = ownership;
  EXPECT_THAT(std::string(Validate(plan, SmallModel()).message()),
              HasSubstr("rank 0 (a/gpu0) owns elements 0 to " + std::to_string(elements[5]) + " of block 5"));
}

TEST(PlanTest, RefusesWhatTheEngineCannotRun) {
  const ModelShape model = SmallModel();
  const auto refused = [&](auto&& change) {
    Plan plan = OneStagePlan(model);
    change(plan, plan.pipelines[0].stages[0]);
    EXPECT_EQ(Validate(plan, model), absl::OkStatus()) << "the language allows it";
    return std::string(ValidateForEngine(plan, model).message());
  };
  EXPECT_EQ(refused([](Plan&, StagePlan&) {}), "");
  EXPECT_EQ(refused([](Plan&, StagePlan& s) { s.units[1].ranks[0].offload.optimizer = true; }), "");
  Plan two = FullPlan();
  two.pipelines[0].stages[0].units[0].ranks[0].offload.parameters = true;
  EXPECT_THAT(
      std::string(ValidateWithin(kEngineLimits, two).message()),
      HasSubstr("it offloads parameters with 2 pipelines, the engine runs plans that keep parameters on the device there"));
}

TEST(PlanTest, LimitsAreByKindOfWhatWaitsOnTheHost) {
  Plan plan = OneStagePlan(SmallModel());
  RankPlan& rank = plan.pipelines[0].stages[0].units[1].ranks[0];
  rank.offload.activations = rank.offload.parameters = true;
  EXPECT_EQ(rank.offload, (OffloadKinds{.activations = true, .parameters = true}));
  EXPECT_EQ(ValidateWithin(kWholeLanguage, plan), absl::OkStatus());
  PlanLimits limits{.offload = {.activations = true, .optimizer = true}, .who = "somebody takes"};
  EXPECT_EQ(ValidateWithin(limits, plan).message(),
            "plan: rank 1 (n1/gpu1): it offloads parameters, somebody takes plans that keep parameters on the device");
  limits.offload = OffloadKinds::None();
  EXPECT_THAT(std::string(ValidateWithin(limits, plan).message()), HasSubstr("it offloads activations and parameters, somebody"));
  rank.offload.parameters = false;
  limits.offload.activations = true;
  EXPECT_EQ(ValidateWithin(limits, plan), absl::OkStatus());
}

TEST(PlanTest, LimitsBesidePipelinesAreTheirOwn) {
  Plan plan = FullPlan();
  ForEachRank(plan, [](RankPlan& rank) { rank.offload = {.activations = true, .optimizer = true}; });
  EXPECT_EQ(ValidateWithin(kEngineLimits, plan), absl::OkStatus());
  plan.pipelines[0].stages[0].units[0].ranks[0].offload.parameters = true;
  EXPECT_THAT(
      std::string(ValidateWithin(kEngineLimits, plan).message()),
      HasSubstr("it offloads parameters with 2 pipelines, the engine runs plans that keep parameters on the device there"));
  EXPECT_EQ(ValidateWithin(kWholeLanguage, plan), absl::OkStatus());
  plan.pipelines.pop_back();
  EXPECT_EQ(ValidateWithin(kEngineLimits, plan), absl::OkStatus());
}

// Two ranks of one stage, whose gradients wait for the optimizer.
TEST(PlanTest, GradientsWaitInHostMemoryWhereTheyAreSummedOnceInTurn) {
  const ModelShape model = SmallModel();
  Plan good = OneStagePlan(model);
  good.schedule = ScheduleFamily::kLayered;
  good.pipelines[0].stages[0].zero_stage = 2;
  ForEachRank(good, [](RankPlan& rank) { rank.offload = {.gradients = true, .optimizer = true}; });
  const auto broken = [&](auto&& change) { return Broken(good, change); };
  EXPECT_EQ(Validate(good, model), absl::OkStatus());
  EXPECT_THAT(broken([](Plan& p) { p.pipelines[0].stages[0].units[1].ranks[0].offload.optimizer = false; }),
              HasSubstr("rank 1 (n1/gpu1): it offloads gradients, but not the optimizer, which they wait for; offload both"));
  EXPECT_THAT(broken([](Plan& p) { p.schedule = ScheduleFamily::k1F1B; }),
              HasSubstr("but schedule 1f1b sums a unit for every microbatch; use layered"));
  EXPECT_THAT(broken([](Plan& p) { p.pipelines.push_back(p.pipelines[0]); }),
              HasSubstr("but 2 pipelines sum them, on the device"));
  EXPECT_THAT(broken([](Plan& p) { p.pipelines[0].stages[0].zero_stage = 1; }),
              HasSubstr("keeps them whole on the device; use zero_stage 2 or 3 over several units, or one rank"));
  EXPECT_THAT(broken([](Plan& p) { p.optimizer_steps = OptimizerSteps::kInTurn; }),
              HasSubstr("but optimizer_steps is in_turn, so that none waits; leave out one of both"));
}

TEST(PlanTest, WhatComesAheadIsBounded) {
  const auto of = [](int64_t prefetch) { return [prefetch](Plan& p) { p.pipelines[0].stages[0].prefetch = prefetch; }; };
  Plan plan = OneStagePlan(SmallModel());
  of(kMostPrefetch)(plan);
  EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
  EXPECT_THAT(ToText(plan), HasSubstr(" prefetch 8\n"));
  EXPECT_THAT(Broken(plan, of(0)), HasSubstr("pipeline 0 stage 0: prefetch must be in 1..8, got 0"));
  EXPECT_THAT(Broken(plan, of(9)), HasSubstr("pipeline 0 stage 0: prefetch must be in 1..8, got 9"));
}

TEST(PlanTest, StepsInTurnAreOfOnePipeline) {
  Plan plan = OneStagePlan(SmallModel());
  plan.optimizer_steps = OptimizerSteps::kInTurn;
  EXPECT_EQ(Validate(plan, SmallModel()), absl::OkStatus());
  EXPECT_EQ(ValidateWithin(kWholeLanguage, plan), absl::OkStatus());
  EXPECT_THAT(std::string(ValidateWithin({.steps_in_turn = false, .who = "somebody takes"}, plan).message()),
              HasSubstr("optimizer_steps is in_turn, somebody takes plans that step at the end (at_end)"));
  EXPECT_THAT(ToText(plan), HasSubstr(" steps in turn\n"));
  EXPECT_THAT(Broken(FullPlan(), [](Plan& p) { p.optimizer_steps = OptimizerSteps::kInTurn; }),
              HasSubstr("optimizer_steps is in_turn, but 2 pipelines sum a unit when all of them have it; use at_end, or one"));
}

// Beside other pipelines too, in stages of tensor-parallel units.
TEST(PlanTest, TheEngineRunsPipelinesInEveryZeroStage) {
  for (const int zero_stage : {0, 1, 2, 3}) {
    Plan plan = FullPlan();
    ForEachRank(plan, [](RankPlan& rank) { rank.offload = OffloadKinds::None(); });
    for (PipelinePlan& pipeline : plan.pipelines) {
      for (StagePlan& stage : pipeline.stages) {
        stage.zero_stage = zero_stage;
        for (UnitPlan& unit : stage.units) {
          for (RankPlan& rank : unit.ranks) rank.shard_ratio = rank.tp_share / static_cast<double>(stage.units.size());
        }
      }
    }
    EXPECT_EQ(ValidateForEngine(plan, SmallModel()), absl::OkStatus()) << zero_stage;
  }
}

TEST(PlanTest, TheEngineRunsStagesInEveryScheduleAndZeroStage) {
  Plan plan = OneStagePlan(SmallModel());
  plan.ownership.reset();
  for (const ScheduleFamily schedule : {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::k1F1B,
                                        ScheduleFamily::kZeroBubble, ScheduleFamily::kZeroBubbleV}) {
    for (const int zero_stage : {0, 1, 2, 3}) {
      plan.schedule = schedule;
      plan.pipelines[0].stages[0].zero_stage = zero_stage;
      plan.pipelines[0].stages[0].units[1].ranks[0].recompute = OpSet().With(Op::kNorm1).With(Op::kUp);
      EXPECT_EQ(ValidateForEngine(plan, SmallModel()), absl::OkStatus());
    }
  }
}

}  // namespace
}  // namespace motley::planner
