#include "tests/worker/engine/equivalence/shrink.h"

#include <gtest/gtest.h>

#include "tests/worker/engine/equivalence/random_plans.h"

namespace motley::engine {
namespace {

using planner::ScheduleFamily;
using planner::StagePlan;
using planner::UnitPlan;

const std::vector<StagePlan>& StagesOf(const PlannedJob& planned) { return planned.plan.pipelines[0].stages; }

int64_t RanksOf(const PlannedJob& planned) {
  int64_t ranks = 0;
  for (const StagePlan& stage : StagesOf(planned)) {
    for (const UnitPlan& unit : stage.units) ranks += static_cast<int64_t>(unit.ranks.size());
  }
  return ranks;
}

bool AnyRank(const PlannedJob& planned, const std::function<bool(const StagePlan&, const UnitPlan&)>& is) {
  for (const StagePlan& stage : StagesOf(planned)) {
    for (const UnitPlan& unit : stage.units) {
      if (is(stage, unit)) return true;
    }
  }
  return false;
}

TEST(ShrinkTest, WhateverFailsBecomesOneDevice) {
  for (int n = 0; n < 80; ++n) {
    const PlannedJob planned = n % 2 == 0 ? DrawPlannedJob(7, n / 2, "/nowhere") : DrawTensorParallelJob(7, n / 2, "/nowhere");
    const PlannedJob smallest = Shrink(planned, [](const PlannedJob&) { return true; });
    EXPECT_EQ(RanksOf(smallest), 1) << ToText(smallest);
    EXPECT_EQ(smallest.job.model.num_layers, 1);
    EXPECT_EQ(smallest.plan.schedule, ScheduleFamily::kLayered);
    EXPECT_EQ(StagesOf(smallest)[0].units[0].microbatches.size(), 1u);
    EXPECT_EQ(StagesOf(smallest)[0].zero_stage, 0);
    EXPECT_TRUE(StagesOf(smallest)[0].units[0].ranks[0].recompute.empty());
  }
}

// A planted failure: a rank without samples in a sharded stage behind another.
TEST(ShrinkTest, TheCauseStaysAndTheRestGoes) {
  const auto fails = [](const PlannedJob& planned) {
    if (StagesOf(planned).size() < 2) return false;
    return AnyRank(planned, [](const StagePlan& stage, const UnitPlan& unit) {
      return stage.zero_stage >= 2 && unit.microbatches.empty() && stage.ministages[0].first > 0;
    });
  };
  int tried = 0;
  for (int n = 0; n < 400 && tried < 10; ++n) {
    const PlannedJob planned = DrawPlannedJob(3, n, "/nowhere");
    if (!fails(planned)) continue;
    ++tried;
    const PlannedJob smallest = Shrink(planned, fails);
    EXPECT_TRUE(fails(smallest));
    EXPECT_EQ(StagesOf(smallest).size(), 2u) << ToText(smallest);
    EXPECT_EQ(RanksOf(smallest), 3);
    EXPECT_EQ(smallest.job.model.num_layers, 2);
    EXPECT_EQ(smallest.plan.schedule, ScheduleFamily::kLayered);
    EXPECT_FALSE(AnyRank(smallest, [](const StagePlan&, const UnitPlan& unit) { return unit.microbatches.size() > 1; }));
    EXPECT_FALSE(AnyRank(smallest, [](const StagePlan&, const UnitPlan& unit) { return !unit.ranks[0].recompute.empty(); }));
  }
  EXPECT_EQ(tried, 10);
}

TEST(ShrinkTest, SmallerPlansAreValidAndOther) {
  for (int n = 0; n < 40; ++n) {
    const PlannedJob planned = DrawPlannedJob(5, n, "/nowhere");
    for (const PlannedJob& smaller : SmallerPlans(planned)) {
      EXPECT_TRUE(planner::ValidateForEngine(smaller.plan, smaller.job.model).ok());
      EXPECT_NE(ToText(smaller), ToText(planned));
    }
  }
}

TEST(ShrinkTest, AsksNoMoreThanItMay) {
  int asked = 0;
  Shrink(
      DrawPlannedJob(5, 0, "/nowhere"), [&](const PlannedJob&) { return ++asked % 2 == 0; }, 7);
  EXPECT_LE(asked, 7);
}

}  // namespace
}  // namespace motley::engine
