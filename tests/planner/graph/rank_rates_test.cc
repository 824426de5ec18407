// What ranks' programs cost, by hand; the same table as classes' (class_rates_test.cc).
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/graph/group_flows.h"
#include "planner/graph/program_rates.h"
#include "planner/plan/ownership.h"
#include "planner/plan/unit_slices.h"
#include "tests/common/program/wide_program_texts.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

// Two layers in the middle on a tensor-parallel pair, the embedding and the head on a card each.
class RankRatesTest : public testing::Test {
 protected:
  RankRatesTest() : setting_(MakeSetting(Nodes({{"T4", "A10G", "T4", "T4"}}), WorkOf(MediumModel(2, false), 2))) {
    plan_ = PlanOf(*setting_, ScheduleFamily::kGPipe,
                   {{{StageOf(*setting_, 0, {{2}}, {{0, -1}}), StageOf(*setting_, 1, {{2}, {}}, {{0, 1}}),
                      StageOf(*setting_, 3, {{2}}, {{2, 1}})}}});
    std::vector<UnitPlan>& units = plan_.pipelines[0].stages[1].units;
    units[0].ranks.push_back(units[1].ranks[0]);
    for (RankPlan& rank : units[0].ranks) rank.tp_share = rank.shard_ratio = 0.5;
    units.resize(1);
    for (const char* text : {kBeforeTheGroup, kLeader, kFollower, kBehindTheGroup}) {
      auto program = ParseProgram(text);
      EXPECT_TRUE(program.ok()) << program.status();
      program->offloads.optimizer = true;
      programs_.push_back(*std::move(program));
    }
    view_ = ViewOf(*setting_, plan_, {.merge = false, .assign_samples = false}).value();
    slices_ = SlicesOfRanks(setting_->workload.model, plan_).value();
    ownership_ = OwnershipOf(plan_, setting_->workload.model);
    writer_ = std::make_unique<GraphWriter>(setting_->links);
    rates_ = RatesOfRanks(*setting_, view_, programs_, ownership_, slices_, writer_.get());
  }
  const Costs& costs() const { return setting_->costs; }
  double Alone(int flow) const { return writer_->SecondsAlone(flow); }
  double Sum(int64_t bytes) const {
    return setting_->links.SecondsAlone(
        setting_->links.Ring(Collective::kAllReduce, std::vector<int>{1, 2}, static_cast<double>(bytes)));
  }

  std::unique_ptr<Setting> setting_;
  Plan plan_;
  std::vector<Program> programs_;
  PlanView view_;
  std::vector<ModelSlice> slices_;
  Ownership ownership_;
  std::unique_ptr<GraphWriter> writer_;
  std::unique_ptr<ProgramRates> rates_;
};

TEST_F(RankRatesTest, EachRankIsAnActor) {
  const Actor follower = rates_->ActorOf(2);
  EXPECT_EQ(follower.name, "n0/gpu2");
  EXPECT_EQ(follower.count, 1);
  EXPECT_EQ(follower.stage, 1);
}

TEST_F(RankRatesTest, ComputeIsOfTheRanksShare) {
  EXPECT_DOUBLE_EQ(rates_->Seconds(1, {TaskKind::kForward, UnitSegment::kWhole, 0, 1, 1}),
                   2 * costs().ForwardSeconds(view_.ranks[1].kind, UnitKind::kLayer, 2, 0.5));
  const ComputeSpan attention{TaskKind::kBackward, UnitSegment::kAttention, 0, 2};
  EXPECT_DOUBLE_EQ(rates_->Seconds(2, attention), SegmentPart(costs(), view_.ranks[2].kind, UnitSegment::kAttention) *
                                                      costs().BackwardSeconds(view_.ranks[2].kind, UnitKind::kLayer, 2, 0.5));
  EXPECT_DOUBLE_EQ(rates_->Seconds(3, {TaskKind::kForward, UnitSegment::kLogits, 0, 3}),
                   costs().ForwardSeconds(view_.ranks[3].kind, UnitKind::kHead, 2));
}

// The plan recomputes nothing.
TEST_F(RankRatesTest, ProgramsSayWhatIsRecomputed) {
  const OpSet two = OpSet().With(Op::kAttention).With(Op::kActivation);
  const int kind = view_.ranks[0].kind;
  EXPECT_DOUBLE_EQ(rates_->Seconds(0, {TaskKind::kRecompute, UnitSegment::kWhole, two.InProgram(), 1}),
                   costs().RecomputeSeconds(kind, UnitKind::kLayer, two, 2));
  EXPECT_DOUBLE_EQ(rates_->Seconds(0, {TaskKind::kRecompute, UnitSegment::kWhole, 0, 1}),
                   costs().ForwardSeconds(kind, UnitKind::kLayer, 2));
}

TEST_F(RankRatesTest, SumsAreOfTheMembers) {
  const std::vector<RankInstruction> pair = {{1, 4}, {2, 3}};
  const InnerSums sums = rates_->SumsInside(pair, {TaskKind::kForward, UnitSegment::kWhole, 0, 1, 1});
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].times, 4);
  EXPECT_EQ(sums[0].microbatch, 0);
  EXPECT_DOUBLE_EQ(Alone(sums[0].flow), Sum(costs().BoundaryBytes(2)));
  EXPECT_TRUE(rates_->SumsInside({pair.data(), 1}, {TaskKind::kForward, UnitSegment::kWhole, 0, 1, 1}).empty()) << "alone";
  EXPECT_TRUE(rates_->SumsInside(pair, {TaskKind::kBackwardWeight, UnitSegment::kWhole, 0, 1}).empty());
}

TEST_F(RankRatesTest, WhatAUnitExchangesIsMadeOnce) {
  const std::vector<RankInstruction> pair = {{1, 6}, {2, 5}};
  const int sum = rates_->Exchange(pair, AllReduceActivation{2, 0, Exchanged::kActivation, 4});
  EXPECT_DOUBLE_EQ(Alone(sum), Sum(costs().BoundaryBytes(2)));
  EXPECT_EQ(rates_->Exchange(pair, AllReduceActivation{1, 0, Exchanged::kGradient, 4}), sum);
  EXPECT_DOUBLE_EQ(Alone(rates_->Exchange(pair, AllReduceActivation{2, 0, Exchanged::kRows, 4})), Sum(costs().RowBytes(2)));
  const int of_leader = rates_->Exchange(pair, BroadcastActivation{1, 0, Exchanged::kActivation, 4, 1});
  const Flow expected = setting_->links.Ring(Collective::kAllGather, std::vector<int>{1, 2},
                                             static_cast<double>(costs().BoundaryBytes(2)), std::vector<double>{1, 0});
  EXPECT_DOUBLE_EQ(Alone(of_leader), setting_->links.SecondsAlone(expected));
  EXPECT_NE(rates_->Exchange(pair, BroadcastActivation{1, 0, Exchanged::kActivation, 4, 2}), of_leader);
}

TEST_F(RankRatesTest, AHandOverIsFromRankToRank) {
  const auto bytes = [this](int64_t samples) { return static_cast<double>(costs().BoundaryBytes(static_cast<double>(samples))); };
  const int both = rates_->HandOver({0, 1, 0, 0, 0, 2});
  EXPECT_DOUBLE_EQ(Alone(both), setting_->links.SecondsAlone(setting_->links.PointToPoint(0, 1, bytes(2))));
  const int first = rates_->HandOver({0, 1, 0, 0, 0, 1});
  EXPECT_DOUBLE_EQ(Alone(first), setting_->links.SecondsAlone(setting_->links.PointToPoint(0, 1, bytes(1))));
  EXPECT_EQ(rates_->HandOver({0, 1, 0, 0, 1, 1}), first) << "whichever samples";
  EXPECT_TRUE(rates_->UnitsWith(1, 0, 1, 1).all());
}

TEST_F(RankRatesTest, StateIsWhatTheRankOwns) {
  const auto owned = [this](int32_t rank, int32_t unit) { return static_cast<double>(ownership_.NumOwned(unit, rank)); };
  ASSERT_GT(owned(2, 1), 0);
  const int kind = view_.ranks[2].kind;
  EXPECT_DOUBLE_EQ(rates_->OptimizerSeconds(2, OptimizerStep{1, 0}), costs().OptimizerSeconds(kind, owned(2, 1)));
  EXPECT_DOUBLE_EQ(rates_->OptimizerSeconds(2, OptimizerStep{}), costs().OptimizerSeconds(kind, owned(2, 1) + owned(2, 2)));
  const auto in = [this](int device, double bytes) {
    return setting_->links.SecondsAlone(setting_->links.FromHost(device, bytes));
  };
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(2, PrefetchParameters{1, 0})),
                   in(2, owned(2, 1) * static_cast<double>(costs().element_bytes())));
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(2, PrefetchOptimizer{1, 0, 1})),
                   in(2, (owned(2, 1) + owned(2, 2)) * static_cast<double>(costs().optimizer_bytes_per_element())));
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(2, PrefetchActivation{1, 0, 0, 1})),
                   in(2, static_cast<double>(2 * costs().BoundaryBytes(2))));
  EXPECT_EQ(rates_->Copy(2, PrefetchActivation{2, 0, 0}), rates_->Copy(2, PrefetchActivation{1, 0, 0})) << "made once";
  EXPECT_DOUBLE_EQ(Alone(rates_->Copy(0, PrefetchActivation{0, 0, 0})), in(0, 0)) << "an embedding's input is tokens";
}

}  // namespace
}  // namespace motley::planner
