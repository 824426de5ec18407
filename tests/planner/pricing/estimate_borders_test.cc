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
  const std::vector<Border>& behind = borders.behind[0];
  ASSERT_EQ(behind.size(), 2u);
  EXPECT_NEAR(behind[0].seconds, seconds, 1e-9 * seconds);
  EXPECT_GE(behind[0].latency_seconds, setting->cluster.nodes[0].nic_latency_seconds);
  EXPECT_NEAR(behind[0].Of(4), seconds / 4 + behind[0].latency_seconds, 1e-9 * seconds);
  EXPECT_EQ(behind[1], Border()) << "the last stage sends to nobody";
  EXPECT_NEAR(borders.fullest_seconds, seconds, 1e-9 * seconds) << "the gradients go the other way";
}

TEST_F(EstimateBordersTest, PipelinesThroughOneNicLoadItTogether) {
  const auto shared = On({{"T4", "T4"}, {"T4", "T4"}}), apart = On({{"T4"}, {"T4"}, {"T4"}, {"T4"}});
  const double half = static_cast<double>(shared->costs.BoundaryBytes(8)) / kNic;
  for (const Setting* setting : {shared.get(), apart.get()}) {
    const Borders borders = Of(*setting, InTurn(*setting, {Pair(*setting, 0, 2, 8), Pair(*setting, 1, 3, 8)}));
    EXPECT_NEAR(borders.behind[0][0].seconds, half, 1e-9) << "nothing else on the links";
    EXPECT_NEAR(borders.behind[1][0].seconds, half, 1e-9);
    EXPECT_NEAR(borders.fullest_seconds, setting == shared.get() ? 2 * half : half, 1e-9);
  }
}

TEST_F(EstimateBordersTest, StagesOnOneNodeLoadNoNic) {
  const auto setting = On({{"T4", "T4"}}, 1e3);  // a million times slower than the link
  const Borders borders = Of(*setting, InTurn(*setting, {Pair(*setting, 0, 1, 16)}));
  const double seconds = static_cast<double>(setting->costs.BoundaryBytes(16)) / kLink;
  EXPECT_NEAR(borders.behind[0][0].seconds, seconds, 1e-9);
  EXPECT_NEAR(borders.fullest_seconds, seconds, 1e-9);
}

TEST_F(EstimateBordersTest, OneStageHasNoBorder) {
  const auto setting = On({{"T4"}, {"T4"}});
  const Borders borders =
      Of(*setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{8}, {8}}, {{0, 7}})}}}));
  EXPECT_EQ(borders.behind, std::vector<std::vector<Border>>{{Border()}});
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
    for (size_t e = 0; e + 1 < borders.behind[0].size(); ++e) EXPECT_NEAR(borders.behind[0][e].seconds, once, 1e-9);
    EXPECT_EQ(borders.behind[0].back(), Border());
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

// Down and back up: the second stage's two halves are neighbours.
TEST_F(EstimateBordersTest, TheTurnOfAVIsNoBorder) {
  const auto setting = On({{"T4"}, {"T4"}});
  const auto dealt = DealLayers(8, 2, 2, VirtualStageMap::kV);
  const Borders borders =
      Of(*setting, PlanOf(*setting, ScheduleFamily::kZeroBubbleV,
                          {{{StageOf(*setting, 0, {{8, 8}}, dealt[0], 0), StageOf(*setting, 1, {{8, 8}}, dealt[1], 0)}}}));
  ASSERT_EQ(borders.behind[0].size(), 4u);
  EXPECT_GT(borders.behind[0][0].seconds, 0);
  EXPECT_EQ(borders.behind[0][1], Border());
  EXPECT_NEAR(borders.behind[0][2].seconds, borders.behind[0][0].seconds, 1e-12);
}

}  // namespace
}  // namespace motley::planner
