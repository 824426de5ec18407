#include "planner/search/width_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/pricing/evaluate.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;

// One stage of all the setting's devices, each a unit of `batch` samples in two microbatches.
Plan Flat(const Setting& setting, int64_t batch) {
  const std::vector<std::vector<int64_t>> each(static_cast<size_t>(setting.num_devices()), {batch / 2, batch - batch / 2});
  return PlanOf(setting, ScheduleFamily::k1F1B, {{{StageOf(setting, 0, each, {{0, 3}}, 1)}}});
}

std::vector<Move> WidthMovesOf(const Setting& setting, const Plan& plan) {
  const auto evaluation = Evaluate(setting, plan);
  EXPECT_TRUE(evaluation.ok()) << evaluation.status();
  std::vector<Move> moves;
  AddWidthMoves(setting, evaluation->plan, &moves);
  for (const Move& move : moves) {
    EXPECT_EQ(Validate(move.plan, setting.workload.model), absl::OkStatus()) << move.what;
    EXPECT_TRUE(Evaluate(setting, move.plan).ok()) << move.what;
  }
  return moves;
}

std::vector<size_t> Widths(const Plan& plan) {
  std::vector<size_t> widths;
  for (const UnitPlan& unit : plan.pipelines[0].stages[0].units) widths.push_back(unit.ranks.size());
  return widths;
}

std::vector<std::string> Whats(const std::vector<Move>& moves) {
  std::vector<std::string> whats;
  for (const Move& move : moves) whats.push_back(move.what);
  return whats;
}

TEST(WidthMovesTest, LikeCardsOfANodeJoinOneOrAll) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4", "T4"}}), WorkOf(MediumModel(4, false), 16));
  const std::vector<Move> moves = WidthMovesOf(*setting, Flat(*setting, 4));
  ASSERT_THAT(Whats(moves),
              ElementsAre("1 x T4 and 1 x T4 of stage 0 as one unit", "all 1 x T4 and 1 x T4 of stage 0 as one unit each"));
  EXPECT_THAT(Widths(moves[0].plan), ElementsAre(2, 1, 1));
  EXPECT_THAT(Widths(moves[1].plan), ElementsAre(2, 2));
  const UnitPlan& joined = moves[0].plan.pipelines[0].stages[0].units[0];
  EXPECT_THAT(joined.microbatches, ElementsAre(4, 4)) << "the batch of both, in as many microbatches";
  for (const RankPlan& rank : joined.ranks) {
    EXPECT_EQ(rank.tp_share, 0.5);
    EXPECT_EQ(rank.shard_ratio, 0.25);
  }
}

TEST(WidthMovesTest, UnlikeCardsShareByWholeHeads) {
  const auto setting = MakeSetting(Nodes({{"A100-40GB", "T4"}}), WorkOf(MediumModel(4, false), 8));
  const std::vector<Move> moves = WidthMovesOf(*setting, Flat(*setting, 4));
  ASSERT_EQ(moves.size(), 1u);
  const UnitPlan& joined = moves[0].plan.pipelines[0].stages[0].units[0];
  ASSERT_EQ(joined.ranks.size(), 2u);
  EXPECT_GT(joined.ranks[0].tp_share, joined.ranks[1].tp_share) << "the faster one more";
  for (const RankPlan& rank : joined.ranks) {
    EXPECT_EQ(rank.tp_share * 8, std::round(rank.tp_share * 8)) << "of eight heads";
    EXPECT_EQ(rank.shard_ratio, rank.tp_share) << "a unit alone stores what it computes";
  }
}

TEST(WidthMovesTest, NeitherAcrossNodesNorBeyondTheDegree) {
  const auto apart = MakeSetting(Nodes({{"T4"}, {"T4"}}), WorkOf(MediumModel(4, false), 8));
  EXPECT_TRUE(WidthMovesOf(*apart, Flat(*apart, 4)).empty());
  const auto narrow = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, false), 8));
  narrow->request.max_tp = 1;
  EXPECT_TRUE(WidthMovesOf(*narrow, Flat(*narrow, 4)).empty());
}

// Joined and cut again, in every pipeline of a class.
TEST(WidthMovesTest, CuttingUndoesJoiningInAllLikePipelines) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}, {"T4", "T4"}}), WorkOf(MediumModel(4, false), 16));
  PipelinePlan pipeline{{StageOf(*setting, 0, {{2, 2}, {2, 2}}, {{0, 3}}, 1)}};
  PipelinePlan other{{StageOf(*setting, 2, {{2, 2}, {2, 2}}, {{0, 3}}, 1)}};
  const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {pipeline, other});
  const std::vector<Move> joins = WidthMovesOf(*setting, plan);
  ASSERT_EQ(joins.size(), 1u);
  for (const PipelinePlan& p : joins[0].plan.pipelines) EXPECT_EQ(p.stages[0].units.size(), 1u);
  const std::vector<Move> cuts = WidthMovesOf(*setting, joins[0].plan);
  ASSERT_THAT(Whats(cuts), ElementsAre("2 x T4 of stage 0 as two units"));
  for (const PipelinePlan& p : cuts[0].plan.pipelines) {
    ASSERT_EQ(p.stages[0].units.size(), 2u);
    for (const UnitPlan& unit : p.stages[0].units) {
      EXPECT_THAT(unit.microbatches, ElementsAre(2, 2));
      EXPECT_EQ(unit.ranks[0].tp_share, 1);
      EXPECT_EQ(unit.ranks[0].shard_ratio, 0.5);
    }
  }
}

}  // namespace
}  // namespace motley::planner
