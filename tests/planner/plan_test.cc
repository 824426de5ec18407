#include "planner/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan_builder.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

Plan GoodPlan(const ModelShape& model) {
  const PlannerInput input = MakeInput(model, MixedDevices(), 11);
  const CostModel cost = *CostModel::Create(input);
  return BuildPlan(input, cost, "cephalo",
                   {{0, 6, 4, true, 0.5}, {1, 3, 3, false, 0.2}, {2, 0, 0, false, 0.3}, {3, 2, 1, false, 0}},
                   {{DeviceId("n3/gpu0"), "slow"}});
}

TEST(PlanTest, JsonRoundTrips) {
  const Plan plan = GoodPlan(SmallModel());
  ASSERT_TRUE(Validate(plan, SmallModel()).ok()) << Validate(plan, SmallModel());
  const std::string json = ToJson(plan);
  const auto parsed = PlanFromJson(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToJson(*parsed), json);
  EXPECT_EQ(parsed->pipelines[0].stages[0].placement, plan.pipelines[0].stages[0].placement);
  EXPECT_EQ(parsed->unused[0].because, "slow");
  EXPECT_EQ(parsed->epoch, Epoch(3));
}

TEST(PlanTest, TextNamesEveryRank) {
  const std::string text = ToText(GoodPlan(SmallModel()));
  EXPECT_THAT(text, HasSubstr("plan epoch 3 cephalo batch 11 seq 32 float32 layered\npipeline 0 / stage 0 layers 0-3\n"));
  EXPECT_THAT(text, HasSubstr("rank 0 n1/gpu0 A6000  batch 6 = 4+2  shard 0.500  recompute full"));
  EXPECT_THAT(text, HasSubstr("rank 2 n2/gpu0 P40    batch 0"));
  EXPECT_THAT(text, HasSubstr("rank 3 n2/gpu1 P40    batch 2 = 2x1"));
  EXPECT_THAT(text, HasSubstr("unused n3/gpu0: slow"));
}

TEST(PlanTest, RefusesWhatTheEngineCannotRun) {
  const ModelShape model = SmallModel();
  Plan plan = GoodPlan(model);
  plan.pipelines.push_back(plan.pipelines[0]);
  EXPECT_THAT(std::string(Validate(plan, model).message()), HasSubstr("pipelines: 2 given"));
  plan = GoodPlan(model);
  plan.pipelines[0].stages.push_back(plan.pipelines[0].stages[0]);
  EXPECT_THAT(std::string(Validate(plan, model).message()), HasSubstr("pipelines[0].stages: 2 given"));
  plan = GoodPlan(model);
  plan.pipelines[0].stages[0].units[1].ranks.push_back({DeviceId("n9/gpu0")});
  EXPECT_THAT(std::string(Validate(plan, model).message()), HasSubstr("units[1].ranks: 2 given"));
}

TEST(PlanTest, RefusesBrokenSumsByName) {
  const ModelShape model = SmallModel();
  const auto message = [&model](auto&& breakIt) {
    Plan plan = GoodPlan(model);
    breakIt(plan, plan.pipelines[0].stages[0]);
    return std::string(Validate(plan, model).message());
  };
  using S = StagePlan;
  EXPECT_THAT(message([](Plan& p, S&) { p.global_batch = 12; }), HasSubstr("add up to 11, the global batch is 12"));
  EXPECT_THAT(message([](Plan& p, S&) { p.seq_len = 4096; }), HasSubstr("seq_len must be in 1..128"));
  EXPECT_THAT(message([](Plan&, S& s) { s.units[1].microbatches = {0}; }),
              HasSubstr("rank 1 (n1/gpu1): microbatches must be at least 1"));
  EXPECT_THAT(message([](Plan&, S& s) { s.units[1].ranks[0].recompute = "some"; }), HasSubstr("recompute 'some'"));
  EXPECT_THAT(message([](Plan&, S& s) { s.units[1].ranks[0].device = DeviceId("n1/gpu0"); }), HasSubstr("twice"));
  EXPECT_THAT(message([](Plan&, S& s) { s.ministages = {{0, 2}}; }), HasSubstr("ministages end before layer 3"));
  EXPECT_THAT(message([](Plan&, S& s) { s.placement[2].bounds[1] = 1; }), HasSubstr("shard_ratio"));
  EXPECT_THAT(message([](Plan&, S& s) { s.placement[2].bounds[1] = s.placement[2].bounds[2] + 1; }),
              HasSubstr("bounds fall at rank 1"));
  EXPECT_THAT(message([](Plan&, S& s) { s.placement[2].bounds.back() -= 1; }), HasSubstr("bounds must go from 0 to"));
  EXPECT_THAT(message([](Plan&, S& s) { s.placement.pop_back(); }), HasSubstr("placement: 5 units given, the model has 6"));
}

TEST(PlanTest, JsonErrorsNameThePath) {
  const auto message = [](const std::string& json) { return std::string(PlanFromJson(json).status().message()); };
  EXPECT_THAT(message("{"), HasSubstr("not JSON"));
  EXPECT_THAT(message("[]"), HasSubstr("plan: must be an object"));
  EXPECT_THAT(message("{}"), HasSubstr("pipelines is missing"));
  EXPECT_THAT(message(R"({"pipeline":[]})"), HasSubstr("unknown key 'pipeline'"));
  EXPECT_THAT(message(R"({"schema_version":9,"pipelines":[]})"), HasSubstr("schema_version 9"));
  EXPECT_THAT(message(R"({"pipelines":[{"stages":[{"units":[{"ranks":[{"device":1}]}]}]}]})"),
              HasSubstr("plan.pipelines[0].stages[0].units[0].ranks[0].device: must be a string"));
  EXPECT_THAT(message(R"({"dtype":"bf16","pipelines":[]})"), HasSubstr("plan.dtype"));
}

}  // namespace
}  // namespace motley::planner
