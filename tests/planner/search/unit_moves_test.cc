#include "planner/search/unit_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EvenPartsTest, AddUpAtMostOneApartEvenlyMixed) {
  for (int64_t batch = 0; batch <= 60; ++batch) {
    for (int64_t count = 1; count <= 64; ++count) {
      const std::vector<int64_t> parts = EvenParts(batch, count);
      ASSERT_EQ(static_cast<int64_t>(parts.size()), std::min(batch, count));
      EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), batch);
      int64_t sum = 0;
      for (size_t i = 0; i < parts.size(); ++i) {
        EXPECT_GE(parts[i], 1);
        sum += parts[i];
        // After any number of parts: less than one sample from the same part of the batch.
        const double exact = static_cast<double>(batch) * static_cast<double>(i + 1) / static_cast<double>(parts.size());
        EXPECT_LT(std::abs(static_cast<double>(sum) - exact), 1) << batch << " in " << count;
      }
      if (parts.empty()) continue;
      EXPECT_LE(*std::max_element(parts.begin(), parts.end()) - *std::min_element(parts.begin(), parts.end()), 1);
    }
  }
  EXPECT_THAT(EvenParts(10, 4), ElementsAre(3, 2, 3, 2));
}

std::vector<std::vector<int64_t>> BatchesOf(const Plan& plan) {
  std::vector<std::vector<int64_t>> batches;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    batches.emplace_back();
    for (const StagePlan& stage : pipeline.stages) {
      int64_t batch = 0;
      for (const UnitPlan& unit : stage.units) batch += unit.batch();
      batches.back().push_back(batch);
    }
  }
  return batches;
}

std::multiset<std::string> DevicesOf(const Plan& plan) {
  std::multiset<std::string> devices;
  ForEachRank(plan, [&](const RankPlan& rank) { devices.insert(rank.device.value()); });
  return devices;
}

std::vector<Move> UnitMovesOf(const Setting& setting, const Plan& plan) {
  auto evaluation = Evaluate(setting, plan);
  EXPECT_TRUE(evaluation.ok()) << evaluation.status();
  std::vector<Move> moves;
  AddUnitMoves(setting, evaluation->plan, &moves);
  return moves;
}

const Move* Find(const std::vector<Move>& moves, const std::string& what) {
  for (const Move& move : moves) {
    if (move.what == what) return &move;
  }
  return nullptr;
}

TEST(UnitMovesTest, EveryNeighbourKeepsTheRulesTheBatchesAndTheDevices) {
  RandomPlans random(11);
  int looked_at = 0;
  for (int i = 0; i < 150; ++i) {
    const auto setting = random.NextSetting();
    const Plan plan = random.Next(*setting);
    // Interleaving may ask for counts that a neighbour lacks.
    if (plan.schedule == ScheduleFamily::kInterleaved || !Validate(plan, setting->workload.model).ok()) continue;
    for (const Move& move : UnitMovesOf(*setting, plan)) {
      EXPECT_EQ(Validate(move.plan, setting->workload.model), absl::OkStatus()) << move.what;
      EXPECT_EQ(BatchesOf(move.plan), BatchesOf(plan)) << move.what;
      EXPECT_EQ(DevicesOf(move.plan), DevicesOf(plan)) << move.what;
      EXPECT_EQ(move.plan.schedule, plan.schedule);
      ++looked_at;
    }
  }
  EXPECT_GT(looked_at, 1000);
}

// Two T4 and an A10G before an A10G.
class UnitMovesOfTwoStagesTest : public testing::Test {
 protected:
  UnitMovesOfTwoStagesTest() : setting_(MakeSetting(Nodes({{"T4", "T4", "A10G"}, {"A10G"}}), WorkOf(MediumModel(8, false), 24))) {
    moves_ = UnitMovesOf(*setting_, PlanOf(*setting_, ScheduleFamily::k1F1B,
                                           {{{StageOf(*setting_, 0, {{4, 4}, {4, 4}, {4, 4}}, {{0, 6}}, 1),
                                              StageOf(*setting_, 3, {{4, 4, 4, 4, 4, 4}}, {{7, 7}}, 1)}}}));
  }
  static std::vector<int64_t> Microbatches(const Move& move, size_t stage, size_t unit) {
    return move.plan.pipelines[0].stages[stage].units[unit].microbatches;
  }
  std::unique_ptr<Setting> setting_;
  std::vector<Move> moves_;
};

TEST_F(UnitMovesOfTwoStagesTest, SizesOfOneClassAndOfAll) {
  const Move* larger = Find(moves_, "microbatches of 2 x T4 in stage 0 one larger");
  ASSERT_NE(larger, nullptr);
  EXPECT_THAT(Microbatches(*larger, 0, 0), ElementsAre(5, 3));
  EXPECT_THAT(Microbatches(*larger, 0, 1), ElementsAre(5, 3));
  EXPECT_THAT(Microbatches(*larger, 0, 2), ElementsAre(4, 4));
  const Move* half = Find(moves_, "all microbatches half as large");
  ASSERT_NE(half, nullptr);
  EXPECT_THAT(Microbatches(*half, 0, 2), ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(Microbatches(*half, 1, 0), std::vector<int64_t>(12, 2));
}

TEST_F(UnitMovesOfTwoStagesTest, EveryoneInAsManyMicrobatches) {
  const Move* same = Find(moves_, "everyone in 6 microbatches");
  ASSERT_NE(same, nullptr);
  EXPECT_THAT(Microbatches(*same, 0, 0), ElementsAre(2, 1, 1, 2, 1, 1));
  EXPECT_THAT(Microbatches(*same, 1, 0), ElementsAre(4, 4, 4, 4, 4, 4));
  EXPECT_NE(Find(moves_, "everyone in 12 microbatches"), nullptr);
}

TEST_F(UnitMovesOfTwoStagesTest, SamplesGoFromTheBusiestClassToTheLeastBusy) {
  const Move* one = Find(moves_, "1 sample each from 2 x T4 in stage 0 to 1 x A10G in stage 0");
  ASSERT_NE(one, nullptr);
  EXPECT_THAT(Microbatches(*one, 0, 0), ElementsAre(4, 3));
  EXPECT_THAT(Microbatches(*one, 0, 2), ElementsAre(5, 5)) << "one from each T4";
}

TEST_F(UnitMovesOfTwoStagesTest, AUnitGoesToTheBusiestStageOnly) {
  // The first stage, of seven layers, is the busiest; the second has one unit, which it keeps.
  for (const Move& move : moves_) EXPECT_THAT(move.what, testing::Not(HasSubstr("a unit of")));
  const std::vector<Move> other = UnitMovesOf(*setting_, PlanOf(*setting_, ScheduleFamily::k1F1B,
                                                                {{{StageOf(*setting_, 0, {{4, 4}, {4, 4}, {4, 4}}, {{0, 0}}, 1),
                                                                   StageOf(*setting_, 3, {{4, 4, 4, 4, 4, 4}}, {{1, 7}}, 1)}}}));
  const Move* given = Find(other, "a unit of 1 x A10G from stage 0 to stage 1");
  ASSERT_NE(given, nullptr);
  const std::vector<StagePlan>& stages = given->plan.pipelines[0].stages;
  ASSERT_EQ(stages[0].units.size(), 2u);
  ASSERT_EQ(stages[1].units.size(), 2u);
  EXPECT_EQ(stages[0].units[0].batch(), 12) << "two like ones share evenly";
  EXPECT_EQ(stages[1].units[1].batch(), 12);
  EXPECT_EQ(stages[1].units[1].ranks[0].shard_ratio, 0.5);
}

TEST_F(UnitMovesOfTwoStagesTest, RecomputationThatChangesNothingIsNoMove) {
  EXPECT_EQ(Find(moves_, "no recomputation on all"), nullptr);
  EXPECT_EQ(Find(moves_, "one operator less recomputed on all"), nullptr);
  const Move* full = Find(moves_, "full recomputation on 1 x A10G in stage 1");
  ASSERT_NE(full, nullptr);
  EXPECT_EQ(full->plan.pipelines[0].stages[1].units[0].ranks[0].recompute, OpSet::All());
  EXPECT_EQ(full->plan.pipelines[0].stages[0].units[0].ranks[0].recompute, OpSet::None());
  EXPECT_NE(Find(moves_, "one operator more recomputed on all"), nullptr);
}

TEST(UnitMovesTest, AUnitThatIsLeftAloneStoresWhatItComputes) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4", "T4"}, {"T4"}}), WorkOf(MediumModel(8, false), 16));
  StagePlan pairs = StageOf(*setting, 0, {{4, 4}, {4, 4}, {}, {}}, {{0, 0}}, 1);
  for (const size_t u : {0, 1}) {
    pairs.units[u].ranks.push_back(pairs.units[u + 2].ranks[0]);
    pairs.units[u].ranks[0].tp_share = 0.75;
    pairs.units[u].ranks[1].tp_share = 0.25;
  }
  pairs.units.resize(2);
  const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{{pairs, StageOf(*setting, 4, {{4, 4, 4, 4}}, {{1, 7}}, 1)}}});
  ASSERT_EQ(Validate(plan, setting->workload.model), absl::OkStatus());
  const std::vector<Move> moves = UnitMovesOf(*setting, plan);
  const Move* given = Find(moves, "a unit of 2 x T4 from stage 0 to stage 1");
  ASSERT_NE(given, nullptr);
  EXPECT_EQ(Validate(given->plan, setting->workload.model), absl::OkStatus());
  const std::vector<StagePlan>& stages = given->plan.pipelines[0].stages;
  EXPECT_EQ(stages[0].units[0].ranks[0].shard_ratio, 0.75);
  EXPECT_DOUBLE_EQ(stages[1].units[0].ranks[0].shard_ratio, 1.0 / 3);
}

TEST(UnitMovesTest, SameQuestionSameMoves) {
  const auto setting = MakeSetting(Nodes({{"T4", "A10G"}}), WorkOf(MediumModel(4, false), 8));
  const Plan plan = PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{2, 2}, {4}}, {{0, 3}})}}});
  const std::vector<Move> first = UnitMovesOf(*setting, plan), second = UnitMovesOf(*setting, plan);
  ASSERT_EQ(first.size(), second.size());
  ASSERT_THAT(first, testing::Not(IsEmpty()));
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(ToJson(first[i].plan), ToJson(second[i].plan));
}

}  // namespace
}  // namespace motley::planner
