#include "planner/search/plan_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/planner/plan_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// `pipelines` of two stages: two A100 and a T4, then two T4.
Plan Alike(size_t pipelines) {
  Plan plan;
  for (size_t p = 0; p < pipelines; ++p) {
    const auto unit = [p](int gpu, const std::string& card, std::vector<int64_t> microbatches) {
      return UnitPlan{{MakeRank(absl::StrCat("n", p, "/gpu", gpu), card, 0.5)}, std::move(microbatches)};
    };
    StagePlan first, second;
    first.ministages = {{0, 1}};
    first.units = {unit(0, "A100-40GB", {2, 2}), unit(1, "T4", {2}), unit(2, "A100-40GB", {2, 2})};
    second.ministages = {{2, 3}};
    second.units = {unit(3, "T4", {5}), unit(4, "T4", {5})};
    plan.pipelines.push_back({{first, second}});
  }
  return plan;
}

std::vector<std::vector<size_t>> Classes(const Plan& plan) {
  std::vector<std::vector<size_t>> classes;
  for (const PipelineClass& c : PipelineClassesOf(plan)) classes.push_back(c.pipelines);
  return classes;
}

TEST(PlanClassesTest, PipelinesOfOneShapeAreOneClass) {
  EXPECT_THAT(Classes(Alike(3)), ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_THAT(Classes(Plan()), ElementsAre());
}

TEST(PlanClassesTest, WhatTellsPipelinesApart) {
  const auto apart = [](auto&& change) {
    Plan plan = Alike(3);
    change(plan.pipelines[1]);
    return Classes(plan);
  };
  const auto alone = ElementsAre(ElementsAre(0, 2), ElementsAre(1));
  EXPECT_THAT(apart([](PipelinePlan& p) { p.stages[0].ministages = {{0, 0}}, p.stages[1].ministages = {{1, 3}}; }), alone);
  EXPECT_THAT(apart([](PipelinePlan& p) { p.stages[1].units[0].microbatches = {4, 1}; }), alone);
  EXPECT_THAT(apart([](PipelinePlan& p) { p.stages[1].units[0].ranks[0].recompute = OpSet::All(); }), alone);
  EXPECT_THAT(apart([](PipelinePlan& p) { p.stages[1].units[0].ranks[0].device_model = "L4"; }), alone);
  EXPECT_THAT(apart([](PipelinePlan& p) { p.stages[1].units.pop_back(); }), alone);
  EXPECT_THAT(apart([](PipelinePlan& p) { p.stages.pop_back(); }), alone);
  EXPECT_THAT(apart([](PipelinePlan& p) { std::swap(p.stages[0].units[0], p.stages[0].units[1]); }), alone) << "order counts";
  EXPECT_THAT(apart([](PipelinePlan& p) { p.stages[0].units[0].ranks[0].device = DeviceId("elsewhere"); }),
              ElementsAre(ElementsAre(0, 1, 2)))
      << "names do not";
}

TEST(PlanClassesTest, UnitsOfOneMakeByStageAndClassOfPipelines) {
  Plan plan = Alike(2);
  plan.pipelines.push_back(Alike(1).pipelines[0]);
  plan.pipelines[2].stages[1].units[1].microbatches = {3, 2};
  const std::vector<UnitClass> classes = UnitClassesOf(plan);
  std::vector<size_t> stages;
  for (const UnitClass& c : classes) stages.push_back(c.stage);
  EXPECT_THAT(stages, ElementsAre(0, 0, 1, 0, 0, 1, 1));
  ASSERT_EQ(classes.size(), 7u);
  EXPECT_THAT(classes[0].places, ElementsAre(Pair(0, 0), Pair(0, 2), Pair(1, 0), Pair(1, 2)));
  EXPECT_THAT(classes[1].places, ElementsAre(Pair(0, 1), Pair(1, 1)));
  EXPECT_THAT(classes[2].places, ElementsAre(Pair(0, 0), Pair(0, 1), Pair(1, 0), Pair(1, 1)));
  EXPECT_THAT(classes[5].places, ElementsAre(Pair(2, 0)));
  EXPECT_THAT(classes[6].places, ElementsAre(Pair(2, 1)));
}

TEST(PlanClassesTest, UnequalTensorParallelSharesAreAnotherMake) {
  Plan plan = Alike(1);
  for (UnitPlan& unit : plan.pipelines[0].stages[1].units) unit.ranks.push_back(unit.ranks[0]);
  const auto with_shares = [&](double first) {
    plan.pipelines[0].stages[1].units[1].ranks[0].tp_share = first;
    return UnitClassesOf(plan).size();
  };
  EXPECT_EQ(with_shares(1), 3u);
  EXPECT_EQ(with_shares(0.6), 4u);
}

TEST(PlanClassesTest, EveryUnitOfAClassAndItsName) {
  Plan plan = Alike(2);
  const std::vector<UnitClass> classes = UnitClassesOf(plan);
  ForEachUnit(classes[1], &plan, [](UnitPlan& unit) { unit.microbatches = {7}; });
  for (const PipelinePlan& pipeline : plan.pipelines) {
    EXPECT_THAT(pipeline.stages[0].units[1].microbatches, ElementsAre(7));
    EXPECT_THAT(pipeline.stages[0].units[0].microbatches, ElementsAre(2, 2));
  }
  EXPECT_EQ(FirstUnit(classes[1], plan).ranks[0].device, DeviceId("n0/gpu1"));
  EXPECT_EQ(Place(classes[0], plan), "4 x A100-40GB in stage 0");
  plan.pipelines[1].stages[0].ministages = {{0, 0}};
  const std::vector<UnitClass> apart = UnitClassesOf(plan);
  EXPECT_EQ(Place(apart.back(), plan), "2 x T4 of pipeline 1 in stage 1");
}

}  // namespace
}  // namespace motley::planner
