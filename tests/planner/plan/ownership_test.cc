#include "planner/plan/ownership.h"

#include <algorithm>
#include <utility>

#include "gtest/gtest.h"
#include "planner/lowering/step_lowering_view.h"
#include "planner/plan/placement.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

TEST(OwnershipTest, EveryElementIsCountedOnceAndTheLedgerBooksWhatIsOwned) {
  RandomPlans random(11);
  int replicated = 0, sharded = 0;
  for (int i = 0; i < 100; ++i) {
    const auto setting = random.NextSetting();
    const Plan plan = random.Next(*setting);
    const std::vector<int64_t> elements = UnitElements(setting->costs.layout());
    const Ownership ownership = OwnershipOf(plan, elements);
    ASSERT_EQ(ownership.size(), elements.size());
    const auto view = ViewOf(*setting, plan);
    ASSERT_TRUE(view.ok()) << view.status();
    std::vector<int64_t> owned(view->ranks.size(), 0);
    for (size_t u = 0; u < elements.size(); ++u) {
      std::vector<std::pair<int64_t, int64_t>> counted;
      for (const OwnedRange& range : ownership[u]) {
        ASSERT_LT(range.begin, range.end);
        owned[range.rank] += range.end - range.begin;
        if (range.first) counted.push_back({range.begin, range.end});
        ++(range.first ? sharded : replicated);
      }
      std::sort(counted.begin(), counted.end());
      int64_t next = 0;
      for (const auto& [begin, end] : counted) {
        EXPECT_EQ(begin, next) << "unit " << u << " of plan " << i;
        next = end;
      }
      EXPECT_EQ(next, elements[u]);
    }
    for (size_t r = 0; r < owned.size(); ++r) {
      const RankView& rank = view->ranks[r];
      const StageView& stage = view->stages[rank.stage];
      int64_t held = 0;
      for (const size_t u : UnitsOfStage(plan.pipelines[rank.pipeline], static_cast<size_t>(stage.index), elements.size())) {
        held += elements[u];
      }
      const RankDuty duty = DutyOf(*view, rank);
      const double share = (stage.plan->zero_stage == 0 ? duty.tp_share : duty.share) * duty.replica_share;
      EXPECT_NEAR(static_cast<double>(owned[r]), share * static_cast<double>(held),
                  static_cast<double>(2 * plan.pipelines.size() * 16 * elements.size()));
    }
  }
  EXPECT_GT(replicated, 0);
  EXPECT_GT(sharded, 0);
}

// Pipeline 0 is one rank, pipeline 1 is two: cut at each pipeline's own borders, some elements would have two owners and some
// none.
TEST(OwnershipTest, UnlikePipelinesShareWhatTheyHoldAlike) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4"}}), WorkOf(MediumModel(1, true), 8));
  PipelinePlan one, two;
  one.stages = {StageOf(*setting, 0, {{4}}, {{0, 0}})};
  two.stages = {StageOf(*setting, 1, {{2}, {2}}, {{0, 0}})};
  Plan plan = PlanOf(*setting, ScheduleFamily::kLayered, {one, two});
  plan.pipelines_zero_stage = 1;
  const Ownership ownership = OwnershipOf(plan, {8, 8, 8});
  const std::vector<OwnedRange> expected = {{0, 0, 2, true}, {0, 4, 6, true}, {1, 2, 4, true}, {2, 6, 8, true}};
  for (const std::vector<OwnedRange>& unit : ownership) EXPECT_EQ(unit, expected);
}

}  // namespace
}  // namespace motley::planner
