// A job's plan by hand whose units are tensor-parallel: what is made of it before the engine is asked.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/graph/program_walk.h"
#include "planner/live/evaluation_split.h"
#include "planner/live/planner.h"
#include "planner/pricing/price.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

TEST(GivenTensorParallelTest, APlanIsFinishedAndItsValidationPassPlanned) {
  PlanRequest request;
  request.runnable = true;
  const auto setting =
      Setting::Create(Nodes({{"A10G", "T4"}, {"A10G", "T4"}}), WorkOf(MediumModel(2, true), 6), request, nullptr).value();
  StagePlan stage = StageOf(*setting, 0, {{2}, {}, {2, 2}, {}}, {{0, 1}}, 0);
  for (const size_t u : {0, 1}) {
    UnitPlan& unit = stage.units[2 * u];
    unit.ranks.push_back(stage.units[2 * u + 1].ranks[0]);
    unit.ranks[0].tp_share = 0.7495;
    unit.ranks[1].tp_share = 0.2505;
    unit.ranks[1].recompute = OpSet().With(Op::kNorm1).With(Op::kUp);
  }
  stage.units = {stage.units[0], stage.units[2]};
  auto priced = Price(*setting, PlanOf(*setting, ScheduleFamily::k1F1B, {{{stage}}}));
  ASSERT_TRUE(priced.ok()) << priced.status();
  const UnitPlan& unit = priced->plan.pipelines[0].stages[0].units[0];
  EXPECT_TRUE(priced->plan.predicted.as_run);
  EXPECT_EQ(unit.ranks[0].tp_share, 0.75);
  EXPECT_EQ(unit.ranks[1].tp_share, 0.25);
  EXPECT_GT(unit.ranks[0].predicted.memory.optimizer, unit.ranks[1].predicted.memory.optimizer);
  EXPECT_THAT(ToText(priced->programs[1]), HasSubstr("keep=boundary ops=norm1,up"));
  EXPECT_THAT(ToText(priced->programs[0]), HasSubstr("keep=all"));
  const auto evaluations = PlanEvaluation(*setting, 5, &priced->plan);
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_EQ(evaluations->size(), 4u);
  for (const size_t unit_rank : {0, 2}) {
    EXPECT_EQ((*evaluations)[unit_rank].microbatches, (*evaluations)[unit_rank + 1].microbatches);
  }
}

TEST(GivenTensorParallelTest, SharesThatCutAHeadAreRefusedWithTheNearest) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 6);
  input.config.planner.plan_json = R"({"pipelines":[{"stages":[{"zero_stage":0,"units":[{"ranks":[
      {"device":"n1/gpu0","tp_share":0.7},{"device":"n1/gpu1","tp_share":0.3}],"microbatches":[2,4]}]}]}]})";
  EXPECT_THAT(std::string(MakePlan(input).status().message()),
              HasSubstr("tp_share 0.7, 0.3 cut a key-value head: the model has 4, a rank computes whole ones; nearest are 0.75, "
                        "0.25"));
}

}  // namespace
}  // namespace motley::planner
