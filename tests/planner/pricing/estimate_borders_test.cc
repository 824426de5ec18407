#include "planner/pricing/estimate_borders.h"

#include <gtest/gtest.h>

#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

constexpr double kLink = 12e9, kNic = 1e9;

class EstimateBordersTest : public testing::Test {
 protected:
  static std::unique_ptr<Setting> On(const std::vector<std::vector<std::string>>& nodes, double nic = kNic, double link = kLink) {
    return MakeSetting(Nodes(nodes, link, nic), WorkOf(MediumModel(8, false), 16));
  }
  static Borders Of(const Setting& setting, const Plan& plan) {
    const auto view = ViewOf(setting, plan);
    EXPECT_TRUE(view.ok()) << view.status();
    return BordersOf(setting, *view);
  }
  // Two stages of one device each.
  static PipelinePlan Pair(const Setting& setting, int first, int second, int64_t batch) {
    return {{StageOf(setting, first, {{batch / 2, batch / 2}}, {{0, 3}}, 0),
             StageOf(setting, second, {{batch / 2, batch / 2}}, {{4, 7}}, 0)}};
  }
  static Plan InTurn(const Setting& setting, std::vector<PipelinePlan> pipelines) {
    return PlanOf(setting, ScheduleFamily::k1F1B, std::move(pipelines));
  }
};

TEST_F(EstimateBordersTest, OnePipelineCrossesItsNicOnceEachWay) {
  const auto setting = On({{"T4"}, {"T4"}});
  const Borders borders = Of(*setting, InTurn(*setting, {Pair(*setting, 0, 1, 16)}));
  const double seconds = static_cast<double>(setting->costs.BoundaryBytes(16)) / kNic;
  ASSERT_EQ(borders.seconds.size(), 2u);
  EXPECT_NEAR(borders.seconds[0], seconds, 1e-9 * seconds);
  EXPECT_GE(borders.latency_seconds[0], setting->cluster.nodes[0].nic_latency_seconds);
  EXPECT_EQ(borders.seconds[1], 0) << "the last stage sends to nobody";
  EXPECT_EQ(borders.latency_seconds[1], 0);
  EXPECT_NEAR(borders.fullest_seconds, seconds, 1e-9 * seconds) << "the gradients go the other way";
}

TEST_F(EstimateBordersTest, PipelinesThroughOneNicLoadItTogether) {
  const auto shared = On({{"T4", "T4"}, {"T4", "T4"}}), apart = On({{"T4"}, {"T4"}, {"T4"}, {"T4"}});
  const double half = static_cast<double>(shared->costs.BoundaryBytes(8)) / kNic;
  for (const Setting* setting : {shared.get(), apart.get()}) {
    const Borders borders = Of(*setting, InTurn(*setting, {Pair(*setting, 0, 2, 8), Pair(*setting, 1, 3, 8)}));
    EXPECT_NEAR(borders.seconds[0], half, 1e-9) << "nothing else on the links";
    EXPECT_NEAR(borders.seconds[2], half, 1e-9);
    EXPECT_NEAR(borders.fullest_seconds, setting == shared.get() ? 2 * half : half, 1e-9);
  }
}

TEST_F(EstimateBordersTest, StagesOnOneNodeLoadNoNic) {
  const auto setting = On({{"T4", "T4"}}, 1e3);  // a million times slower than the link
  const Borders borders = Of(*setting, InTurn(*setting, {Pair(*setting, 0, 1, 16)}));
  const double seconds = static_cast<double>(setting->costs.BoundaryBytes(16)) / kLink;
  EXPECT_NEAR(borders.seconds[0], seconds, 1e-9);
  EXPECT_NEAR(borders.fullest_seconds, seconds, 1e-9);
}

TEST_F(EstimateBordersTest, OneStageHasNoBorder) {
  const auto setting = On({{"T4"}, {"T4"}});
  const Borders borders =
      Of(*setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{8}, {8}}, {{0, 7}})}}}));
  EXPECT_EQ(borders.seconds, std::vector<double>{0});
  EXPECT_EQ(borders.fullest_seconds, 0);
}

TEST_F(EstimateBordersTest, EveryBorderOfLayeredMinistagesCounts) {
  const auto setting = On({{"T4"}, {"T4"}});
  const double once = static_cast<double>(setting->costs.BoundaryBytes(16)) / kNic;
  for (const int64_t ministages : {1, 2, 4}) {
    const auto dealt = DealLayers(8, 2, ministages);
    const Borders borders =
        Of(*setting, PlanOf(*setting, ScheduleFamily::kLayered,
                            {{{StageOf(*setting, 0, {{8, 8}}, dealt[0], 0), StageOf(*setting, 1, {{8, 8}}, dealt[1], 0)}}}));
    EXPECT_NEAR(borders.fullest_seconds, static_cast<double>(2 * ministages - 1) * once, 1e-9) << ministages;
    EXPECT_NEAR(borders.seconds[0], once, 1e-9);
  }
}

// Four units on two nodes send to two on one: each of its samples comes over that node's NIC, half of them from either sender.
TEST_F(EstimateBordersTest, TheNarrowSideDecides) {
  const auto setting = On({{"T4", "T4"}, {"T4", "T4"}, {"T4", "T4"}});
  const Plan plan = InTurn(
      *setting, {{{StageOf(*setting, 0, {{4}, {4}, {4}, {4}}, {{0, 3}}, 0), StageOf(*setting, 4, {{8}, {8}}, {{4, 7}}, 0)}}});
  const double all = static_cast<double>(setting->costs.BoundaryBytes(16)) / kNic;
  EXPECT_NEAR(Of(*setting, plan).fullest_seconds, all, 1e-9);
  // Two units of eight and one node more on the far side: each NIC carries half.
  const auto wide = On({{"T4"}, {"T4"}, {"T4"}, {"T4"}});
  const Plan level = InTurn(*wide, {{{StageOf(*wide, 0, {{8}, {8}}, {{0, 3}}, 0), StageOf(*wide, 2, {{8}, {8}}, {{4, 7}}, 0)}}});
  EXPECT_NEAR(Of(*wide, level).fullest_seconds, all / 2, 1e-9);
}

}  // namespace
}  // namespace motley::planner
