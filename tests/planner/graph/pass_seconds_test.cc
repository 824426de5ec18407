// Seconds and sums of one microbatch, by hand.
#include "planner/graph/pass_seconds.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

constexpr Part kAll{true, 0, 4, true}, kLayers{false, 0, 3, false}, kEnds{true, 0, 0, true};

// A unit of an A10G that computes most and a T4, which takes longer; they recompute unlike operators.
class PassSecondsTest : public testing::Test {
 protected:
  PassSecondsTest() : setting_(MakeSetting(Nodes({{"A10G", "T4"}}), WorkOf(MediumModel(4, false), 8))) {
    StagePlan stage = StageOf(*setting_, 0, {{4, 4}, {}}, {{0, 3}});
    UnitPlan& unit = stage.units[0];
    unit.ranks.push_back(stage.units[1].ranks[0]);
    unit.ranks[0].tp_share = 0.6;
    unit.ranks[1].tp_share = 0.4;
    unit.ranks[0].recompute = kTwo;
    stage.units.resize(1);
    plan_ = PlanOf(*setting_, ScheduleFamily::kGPipe, {{{stage}}});
    view_ = ViewOf(*setting_, plan_).value();
  }
  const Costs& costs() const { return setting_->costs; }

  static constexpr OpSet kTwo = OpSet().With(Op::kNorm1).With(Op::kActivation);
  std::unique_ptr<Setting> setting_;
  Plan plan_;
  PlanView view_;
};

TEST(PartTest, SumsOverItsUnits) {
  const auto each = [](UnitKind unit) { return unit == UnitKind::kLayer ? 10 : unit == UnitKind::kHead ? 2 : 1; };
  EXPECT_EQ(kAll.Sum(each), 43);
  EXPECT_EQ(kLayers.Sum(each), 30);
  EXPECT_EQ(kEnds.Sum(each), 3);
}

TEST_F(PassSecondsTest, ARankAloneTakesItsShare) {
  const PassSeconds pass = SecondsOf(costs(), view_.ranks[0], 4);
  EXPECT_DOUBLE_EQ(pass.Forward(kLayers), 3 * costs().ForwardSeconds(0, UnitKind::kLayer, 4, 0.6));
  EXPECT_DOUBLE_EQ(pass.Backward(kEnds), costs().BackwardSeconds(0, UnitKind::kEmbedding, 4, 0.6) +
                                             costs().BackwardSeconds(0, UnitKind::kHead, 4, 0.6));
  EXPECT_DOUBLE_EQ(pass.Backward(kLayers, /*splits=*/true), 3 * costs().BackwardInputSeconds(0, UnitKind::kLayer, 4, 0.6) +
                                                                3 * costs().BackwardWeightSeconds(0, UnitKind::kLayer, 4, 0.6));
}

TEST_F(PassSecondsTest, LayersAreRecomputedAsThePlanOrAProgramSays) {
  const RankView& rank = view_.ranks[0];
  EXPECT_DOUBLE_EQ(SecondsOf(costs(), rank, 4).Recompute(kAll), 4 * costs().RecomputeSeconds(0, UnitKind::kLayer, kTwo, 4, 0.6))
      << "no embedding or head";
  EXPECT_DOUBLE_EQ(SecondsOf(costs(), rank, 4, OpSet::All()).Recompute(kAll),
                   4 * costs().RecomputeSeconds(0, UnitKind::kLayer, OpSet::All(), 4, 0.6));
  EXPECT_EQ(SecondsOf(costs(), view_.ranks[1], 4).Recompute(kAll), 0);
}

TEST_F(PassSecondsTest, TheSlowestRankOfAUnitHoldsForAll) {
  SecondsTable table(costs(), view_.ranks, view_.actors);
  const double slow = costs().ForwardSeconds(1, UnitKind::kLayer, 4, 0.4);
  ASSERT_GT(slow, costs().ForwardSeconds(0, UnitKind::kLayer, 4, 0.6));
  EXPECT_DOUBLE_EQ(table.Of(0, 4).Forward(kLayers), 3 * slow);
  EXPECT_DOUBLE_EQ(table.Of(0, 2).Forward(kLayers), 3 * costs().ForwardSeconds(1, UnitKind::kLayer, 2, 0.4));
  EXPECT_DOUBLE_EQ(table.Of(0, 4).Recompute(kLayers), 3 * costs().RecomputeSeconds(0, UnitKind::kLayer, kTwo, 4, 0.6))
      << "the other recomputes nothing";
  EXPECT_DOUBLE_EQ(table.Of(0, 4, OpSet::All()).Recompute(kLayers),
                   3 * costs().RecomputeSeconds(1, UnitKind::kLayer, OpSet::All(), 4, 0.4));
  EXPECT_DOUBLE_EQ(table.Of(0, 4).Recompute(kLayers), 3 * costs().RecomputeSeconds(0, UnitKind::kLayer, kTwo, 4, 0.6))
      << "each looked up by itself";
}

TEST_F(PassSecondsTest, SegmentsShareALayer) {
  const double attention = SegmentPart(costs(), 0, UnitSegment::kAttention);
  EXPECT_GT(attention, 0.1);
  EXPECT_LT(attention, 0.9);
  EXPECT_DOUBLE_EQ(attention + SegmentPart(costs(), 0, UnitSegment::kMlp), 1);
  EXPECT_EQ(SegmentPart(costs(), 0, UnitSegment::kWhole), 1);
  EXPECT_EQ(SegmentPart(costs(), 0, UnitSegment::kLogits), 1);
  EXPECT_EQ(SegmentPart(costs(), 0, UnitSegment::kLoss), 0);
}

// Megatron-LM section 3.
TEST(SumsInsideTest, TwoALayerAndOneAtEachEnd) {
  EXPECT_EQ(SumsInside(TaskKind::kForward, kAll), 2 * 4 + 1);
  EXPECT_EQ(SumsInside(TaskKind::kForward, kEnds), 1) << "the embedding's";
  EXPECT_EQ(SumsInside(TaskKind::kBackward, kLayers), 2 * 3);
  EXPECT_EQ(SumsInside(TaskKind::kBackwardInput, kEnds), 1) << "the head's";
  EXPECT_EQ(SumsInside(TaskKind::kBackwardWeight, kAll), 0);
  EXPECT_EQ(SumsInside(TaskKind::kRecompute, kAll), 0) << "what was summed is kept";
}

}  // namespace
}  // namespace motley::planner
