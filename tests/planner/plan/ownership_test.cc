#include "planner/plan/ownership.h"

#include "gtest/gtest.h"
#include "planner/plan/placement.h"
#include "planner/view/plan_view.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

TEST(OwnershipTest, EveryElementHasOneOwnerAndTheLedgerBooksWhatIsOwned) {
  RandomPlans random(11);
  for (int i = 0; i < 100; ++i) {
    const auto setting = random.NextSetting();
    const Plan plan = random.Next(*setting);
    const std::vector<int64_t> elements = UnitElements(setting->costs.layout());
    const Ownership ownership = OwnershipOf(plan, setting->workload.model);
    const auto view = ViewOf(*setting, plan);
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(Validate(ownership, elements, static_cast<int32_t>(view->ranks.size())), absl::OkStatus());
    const std::vector<double> owned = ownership.NumOwnedByRank(view->ranks.size());
    for (const RankView& rank : view->ranks) {
      const auto r = static_cast<size_t>(&rank - view->ranks.data());
      const StageView& stage = view->stages[rank.stage];
      int64_t held = 0;
      for (const size_t u : UnitsOfStage(plan.pipelines[rank.pipeline], static_cast<size_t>(stage.index), elements.size())) {
        held += elements[u];
      }
      if (stage.num_ranks > stage.num_units) continue;  // cut slice by slice: UnitSlicesTest
      const RankDuty duty = DutyOf(*view, rank);
      const double alone = stage.plan->zero_stage == 0 ? duty.tp_share / stage.num_units : duty.share;
      EXPECT_NEAR(owned[r], alone * static_cast<double>(held) / static_cast<double>(plan.pipelines.size()),
                  static_cast<double>(2 * plan.pipelines.size() * 16 * elements.size()));
    }
  }
}

// Pipeline 0 is one rank, pipeline 1 is two: cut at each pipeline's own borders, some elements would have two owners and some
// none.
TEST(OwnershipTest, UnlikePipelinesShareWhatTheyHoldAlike) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4"}}), WorkOf(MediumModel(1, true), 8));
  PipelinePlan one, two;
  one.stages = {StageOf(*setting, 0, {{4}}, {{0, 0}})};
  two.stages = {StageOf(*setting, 1, {{2}, {2}}, {{0, 0}})};
  Plan plan = PlanOf(*setting, ScheduleFamily::kLayered, {one, two});
  const Ownership ownership = OwnershipOf(plan, {8, 8, 8});
  const OwnedRanges expected = {{0, 0, 2}, {1, 2, 4}, {0, 4, 6}, {2, 6, 8}};
  for (int32_t block = 0; block < 3; ++block) EXPECT_EQ(ownership.Of(block), expected);
  EXPECT_EQ(ownership.AlikeBlocks().size(), 1u);
}

TEST(OwnershipTest, SharesBecomeRangesAndFollowFromThem) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4"}}), WorkOf(MediumModel(1, true), 8));
  Plan plan = PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{2}, {2}, {4}}, {{0, 0}})}}});
  StagePlan& stage = plan.pipelines[0].stages[0];
  const std::vector<double> shares = {0.5, 0, 0.5};
  for (size_t u = 0; u < 3; ++u) stage.units[u].ranks[0].shard_ratio = shares[u];
  const auto give = [&] {
    plan.ownership = OwnershipOf(plan, {9, 9, 9});
    GiveOwnership(setting->workload.model, &plan);
  };
  give();
  EXPECT_EQ(plan.ownership->Of(1), (OwnedRanges{{0, 0, 5}, {2, 5, 9}}));
  EXPECT_DOUBLE_EQ(stage.units[0].ranks[0].shard_ratio, 5.0 / 9);
  EXPECT_EQ(stage.units[1].ranks[0].shard_ratio, 0);
  // What nobody shards is one rank's, too, in even parts.
  plan.ownership.reset();
  stage.zero_stage = 0;
  give();
  EXPECT_EQ(plan.ownership->Of(1), (OwnedRanges{{0, 0, 3}, {1, 3, 6}, {2, 6, 9}}));
  EXPECT_EQ(stage.zero_stage, 1);
}

}  // namespace
}  // namespace motley::planner
