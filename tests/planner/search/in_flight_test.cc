#include "planner/search/in_flight.h"

#include <gtest/gtest.h>

#include "planner/pricing/evaluate.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

// Four T4 one after the other, rounds of one sample.
class InFlightTest : public testing::Test {
 protected:
  static std::unique_ptr<Setting> WithMemory(int64_t bytes) {
    Cluster cluster = Nodes({{"T4"}, {"T4"}, {"T4"}, {"T4"}});
    cluster.kinds[0].memory_bytes = bytes;
    return MakeSetting(std::move(cluster), WorkOf(MediumModel(8, false), 16));
  }
  static Plan InTurn(const Setting& setting, ScheduleFamily schedule = ScheduleFamily::k1F1B, size_t rounds = 16) {
    PipelinePlan pipeline;
    const auto dealt = DealLayers(8, 4, 1);
    for (int s = 0; s < 4; ++s) {
      const std::vector<int64_t> microbatches(rounds, 16 / static_cast<int64_t>(rounds));
      pipeline.stages.push_back(StageOf(setting, s, {microbatches}, dealt[s], 0));
    }
    return PlanOf(setting, schedule, {pipeline});
  }
  static std::vector<int64_t> Kept(const Plan& plan) {
    std::vector<int64_t> kept;
    for (const StagePlan& stage : plan.pipelines[0].stages) kept.push_back(stage.in_flight);
    return kept;
  }
  using Numbers = std::vector<int64_t>;
};

TEST_F(InFlightTest, AFactorOfTheSchedulesOwn) {
  const auto setting = WithMemory(int64_t{16} << 30);
  const Plan plan = InTurn(*setting);
  EXPECT_EQ(Kept(WithInFlight(*setting, plan, 2)), Numbers({8, 6, 4, 0})) << "the last stage waits for nobody";
  EXPECT_EQ(Kept(WithInFlight(*setting, plan, 1.3)), Numbers({6, 4, 3, 0})) << "rounded up";
  EXPECT_EQ(Kept(WithInFlight(*setting, plan, 100)), Numbers({16, 16, 16, 0})) << "all that there are";
  EXPECT_EQ(Kept(WithInFlight(*setting, InTurn(*setting, ScheduleFamily::k1F1B, 4), 2)), Numbers({0, 4, 4, 0}))
      << "4 of 4 is its own";
}

TEST_F(InFlightTest, OneIsTheSchedulesOwn) {
  const auto setting = WithMemory(int64_t{16} << 30);
  const Plan plan = WithInFlight(*setting, InTurn(*setting), 3);
  ASSERT_NE(Kept(plan), Numbers(4, 0));
  for (const double factor : {1.0, 0.5, 0.0}) EXPECT_EQ(Kept(WithInFlight(*setting, plan, factor)), Numbers(4, 0));
}

TEST_F(InFlightTest, OtherSchedulesAndSingleStagesStayAsTheyAre) {
  const auto setting = WithMemory(int64_t{16} << 30);
  for (const ScheduleFamily schedule : {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::kInterleaved}) {
    const Plan plan = InTurn(*setting, schedule);
    EXPECT_EQ(ToJson(WithInFlight(*setting, plan, 4)), ToJson(plan));
  }
  const Plan single = PlanOf(*setting, ScheduleFamily::k1F1B,
                             {{{StageOf(*setting, 0, {{1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}}, {{0, 7}})}}});
  EXPECT_EQ(ToJson(WithInFlight(*setting, single, 4)), ToJson(single));
}

// As many as memory holds and not one fewer; on memories from too small for the schedule's own to enough for all.
TEST_F(InFlightTest, UpToMemoryNeverBeyond) {
  for (const ScheduleFamily schedule : {ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
    int limited = 0, unlimited = 0, none = 0;
    const auto large = WithMemory(int64_t{16} << 30);
    const double most = EstimatePlan(*large, WithInFlight(*large, InTurn(*large, schedule), 4))->worst_memory;
    for (const double part :
         {0.4, 0.5, 0.55, 0.6, 0.61, 0.62, 0.63, 0.64, 0.65, 0.675, 0.7, 0.725, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.95, 1.01}) {
      const auto setting = WithMemory(static_cast<int64_t>(part * most * static_cast<double>(int64_t{16} << 30)));
      const Plan before = InTurn(*setting, schedule), after = WithInFlight(*setting, before, 4);
      if (EstimatePlan(*setting, before)->worst_memory <= 1) {
        EXPECT_LE(EstimatePlan(*setting, after)->worst_memory, 1) << part;
      }
      for (size_t s = 0; s < 4; ++s) {
        const int64_t own = 4 - static_cast<int64_t>(s), kept = Kept(after)[s];
        const int64_t through = s == 0 ? 16 : std::max(Kept(after)[s - 1], own + 1);
        const int64_t wanted = own == 1 || std::min(4 * own, through) <= own ? 0 : std::min({int64_t{16}, 4 * own, through});
        EXPECT_TRUE(kept == 0 || kept > own) << "never fewer than the schedule's own";
        EXPECT_LE(kept, wanted);
        (kept == wanted ? unlimited : kept > 0 ? limited : none) += own > 1;
        if (kept == wanted) continue;
        Plan more = before;  // of this stage alone
        more.pipelines[0].stages[s].in_flight = std::max(kept, own) + 1;
        EXPECT_GT(EstimatePlan(*setting, more)->worst_memory, 1) << "stage " << s << " keeps " << kept << " with " << part;
      }
    }
    EXPECT_GT(limited, 2);
    EXPECT_GT(unlimited, 3);
    EXPECT_GT(none, 3);
  }
}

}  // namespace
}  // namespace motley::planner
