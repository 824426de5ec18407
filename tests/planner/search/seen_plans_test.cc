#include "planner/search/seen_plans.h"

#include "gtest/gtest.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

Plan OneStage(const Setting& setting, int64_t microbatches) {
  return PlanOf(setting, ScheduleFamily::k1F1B,
                {{{StageOf(setting, 0, {std::vector<int64_t>(static_cast<size_t>(microbatches), 8 / microbatches)}, {{0, 3}})}}});
}

TEST(SeenPlansTest, EstimatesAreTheEstimators) {
  const auto setting = MakeSetting(Nodes({{"T4"}}), WorkOf(MediumModel(4, false), 8));
  SeenPlans seen;
  for (const int round : {1, 2}) {
    for (const int64_t microbatches : {1, 2, 4}) {
      const Plan plan = OneStage(*setting, microbatches);
      const auto known = seen.Estimate(*setting, plan);
      const auto asked = EstimatePlan(*setting, plan);
      ASSERT_TRUE(known && asked.ok()) << round << asked.status();
      EXPECT_EQ(known->step_seconds, asked->step_seconds);
      EXPECT_EQ(known->worst_memory, asked->worst_memory);
    }
  }
}

TEST(SeenPlansTest, TheFirstSimulationOfALayoutStays) {
  const auto setting = MakeSetting(Nodes({{"T4"}}), WorkOf(MediumModel(4, false), 8));
  SeenPlans seen;
  const LayoutDigest plan = DigestOf(OneStage(*setting, 1));
  EXPECT_FALSE(seen.Find(plan));
  seen.Note(plan, {{0, 3}, 40});
  EXPECT_FALSE(seen.Find(DigestOf(OneStage(*setting, 2))));
  const auto known = seen.Find(plan);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->tasks, 40u);
  EXPECT_TRUE(known->score.Better({0, 3.1}));
  EXPECT_FALSE(known->score.Better({0, 3})) << "no gain";
  EXPECT_TRUE(known->score.Better({0.1, 1})) << "what does not fit is no better for being quick";
}

}  // namespace
}  // namespace motley::planner
