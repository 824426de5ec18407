#include "planner/search/turn_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/groups/groupings.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "planner/search/plan_moves.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

bool EvenShares(const StagePlan& stage) {
  const double first = stage.units[0].ranks[0].shard_ratio;
  for (const UnitPlan& unit : stage.units) {
    for (const RankPlan& rank : unit.ranks) {
      if (std::abs(rank.shard_ratio - first) > 1e-12) return false;
    }
  }
  return true;
}

template <typename Function>
void ForEachRank(StagePlan* stage, Function function) {
  for (UnitPlan& unit : stage->units) {
    for (RankPlan& rank : unit.ranks) function(rank);
  }
}

// The same degree in all groups.
TurnChoice Choice(std::vector<std::vector<int>> groups, int tp, int64_t rounds, double in_flight_factor = 1, int zero_stage = 1,
                  ScheduleFamily schedule = ScheduleFamily::k1F1B) {
  TurnChoice choice;
  choice.tp.assign(groups.size(), tp);
  choice.groups = std::move(groups);
  choice.rounds = rounds;
  choice.in_flight_factor = in_flight_factor;
  choice.zero_stage = zero_stage;
  choice.schedule = schedule;
  return choice;
}

double WorstMemory(const Setting& setting, const Plan& plan) { return EstimatePlan(setting, plan).value().worst_memory; }

std::unique_ptr<Setting> Mixed(int64_t batch, const char* model) {
  return SettingOf(ClusterText({{"n1", Cards("A100-40GB", 2)}, {"n2", Cards("T4", 4)}, {"n3", Cards("V100-16GB", 3)}}), model,
                   batch, 512);
}

bool IsOfWidths(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), "units of such widths are not planned");
}

TEST(TurnStagesTest, PlansAreValidWholeAndFit) {
  int made = 0, recomputed = 0, uneven = 0;
  for (const char* model : {"gpt2-774m", "gpt2-1.5b", "llama-7b"}) {
    for (const int64_t batch : {24, 50}) {
      const auto setting = Mixed(batch, model);
      for (const Grouping& grouping : CandidateGroupings(*setting)) {
        for (const TurnChoice& choice :
             {Choice(grouping.groups, 1, 8), Choice(grouping.groups, 2, 5, 2), Choice(grouping.groups, 4, 16, 3, 2),
              Choice(grouping.groups, 1, 12, 2, 3, ScheduleFamily::kZeroBubble), Choice(grouping.groups, 1, 64, 1, 0)}) {
          const auto plan = PlanTurns(*setting, choice);
          if (!plan.ok()) {
            EXPECT_TRUE(absl::IsResourceExhausted(plan.status()) || IsOfWidths(plan.status())) << plan.status();
            continue;
          }
          ++made;
          EXPECT_EQ(Validate(*plan, setting->workload.model), absl::OkStatus()) << grouping.from;
          EXPECT_LE(WorstMemory(*setting, *plan), 1)
              << grouping.from << ", " << choice.rounds << " rounds, ZeRO " << choice.zero_stage;
          ASSERT_EQ(plan->pipelines.size(), 1u);
          const std::vector<StagePlan>& stages = plan->pipelines[0].stages;
          ASSERT_EQ(stages.size(), choice.groups.size());
          const std::vector<int64_t> counts = LayerCounts(plan->pipelines[0]);
          EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), setting->workload.model.num_layers);
          for (size_t s = 0; s < stages.size(); ++s) {
            size_t ranks = 0;
            for (const UnitPlan& unit : stages[s].units) {
              ranks += unit.ranks.size();
              EXPECT_LE(unit.ranks.size(), static_cast<size_t>(choice.tp[s]));
              EXPECT_LE(static_cast<int64_t>(unit.microbatches.size()), choice.rounds);
              recomputed += !unit.ranks[0].recompute.empty();
            }
            EXPECT_EQ(ranks, choice.groups[s].size()) << "nobody is left out";
            uneven += !EvenShares(stages[s]);
          }
        }
      }
    }
  }
  EXPECT_GT(made, 50);
  EXPECT_GT(recomputed, 20);
  EXPECT_GT(uneven, 0);
}

// Like cards and a batch that divides: the ledger's numbers are exact.
TEST(TurnStagesTest, LadderIsClimbedOnlyAsFarAsMemoryAsks) {
  int recomputed = 0, partly = 0, none = 0;
  for (const char* model : {"gpt2-774m", "gpt2-1.5b", "llama-1.1b", "llama-3b"}) {
    const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 4)}, {"n2", Cards("T4", 4)}}), model, 128, 512);
    for (const int64_t rounds : {1, 2, 4, 8, 16}) {
      const auto plan = PlanTurns(*setting, Choice({{0, 1, 2, 3}, {4, 5, 6, 7}}, 1, rounds));
      if (!plan.ok()) continue;
      for (size_t s = 0; s < 2; ++s) {
        const RankPlan& rank = plan->pipelines[0].stages[s].units[0].ranks[0];
        (rank.recompute.empty() ? none : rank.recompute.all() ? recomputed : partly) += 1;
        if (rank.recompute.empty() || !EvenShares(plan->pipelines[0].stages[s])) continue;
        Plan less = *plan;
        ForEachRank(&less.pipelines[0].stages[s], [&](RankPlan& r) { r.recompute = SteppedRecompute(*setting, r, 1, -1); });
        EXPECT_GT(WorstMemory(*setting, less), 1)
            << model << " in " << rounds << " rounds: " << ToText(rank.recompute) << " is too much";
      }
    }
  }
  EXPECT_GT(partly, 0);
  EXPECT_GT(recomputed + partly, 3);
  EXPECT_GT(none, 0);
}

TEST(TurnStagesTest, UnevenSharesOnlyWhereEvenOnesDoNotFit) {
  int even = 0, uneven = 0;
  for (const char* model : {"gpt2-774m", "gpt2-1.5b", "llama-3b", "llama-7b"}) {
    const auto setting = SettingOf(ClusterText({{"n1", Cards("A100-40GB", 2)}, {"n2", Cards("T4", 2)}}), model, 32, 512);
    for (const int zero : {1, 2, 3}) {
      const auto plan = PlanTurns(*setting, Choice({{0, 1, 2, 3}}, 1, 8, 1, zero));
      if (!plan.ok()) continue;
      const StagePlan& stage = plan->pipelines[0].stages[0];
      if (EvenShares(stage)) {
        ++even;
        continue;
      }
      ++uneven;
      EXPECT_GT(stage.units[0].ranks[0].shard_ratio, stage.units[2].ranks[0].shard_ratio) << "the A100 holds more";
      Plan other = *plan;
      ForEachRank(&other.pipelines[0].stages[0], [](RankPlan& rank) { rank.shard_ratio = 0.25; });
      EXPECT_GT(WorstMemory(*setting, other), 1);
    }
  }
  EXPECT_GT(even, 0);
  EXPECT_GT(uneven, 0);
}

// The slowest stage of every division of the layers over three single cards, by hand.
TEST(TurnStagesTest, LayersGoWhereTheyEndFirst) {
  const auto setting = SettingOf(
      ClusterText({{"n1", Cards("T4", 1)}, {"n2", Cards("A100-40GB", 1)}, {"n3", Cards("V100-16GB", 1)}}), "gpt2-124m", 16, 256);
  const Costs& costs = setting->costs;
  const auto seconds = [&](int kind, UnitKind unit) {
    return costs.ForwardSeconds(kind, unit, 2) + costs.BackwardSeconds(kind, unit, 2);
  };
  const auto slowest = [&](int64_t a, int64_t b, int64_t c) {
    const std::vector<int> kinds = {setting->KindOf(0), setting->KindOf(1), setting->KindOf(2)};
    return std::max({static_cast<double>(a) * seconds(kinds[0], UnitKind::kLayer) + seconds(kinds[0], UnitKind::kEmbedding),
                     static_cast<double>(b) * seconds(kinds[1], UnitKind::kLayer),
                     static_cast<double>(c) * seconds(kinds[2], UnitKind::kLayer) + seconds(kinds[2], UnitKind::kHead)});
  };
  const auto plan = PlanTurns(*setting, Choice({{0}, {1}, {2}}, 1, 8));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const StagePlan& stage : plan->pipelines[0].stages) EXPECT_EQ(stage.units[0].ranks[0].recompute, OpSet::None());
  double best = slowest(1, 1, 10);
  for (int64_t a = 1; a <= 10; ++a) {
    for (int64_t b = 1; a + b <= 11; ++b) best = std::min(best, slowest(a, b, 12 - a - b));
  }
  const std::vector<int64_t> counts = LayerCounts(plan->pipelines[0]);
  EXPECT_NEAR(slowest(counts[0], counts[1], counts[2]), best, 1e-12);
}

TEST(TurnStagesTest, UnitsAreOfLikeDevicesOfOneNode) {
  const auto setting = Mixed(32, "gpt2-774m");
  const auto plan = PlanTurns(*setting, Choice({{0, 1, 2, 3, 4, 5, 6, 7}}, 2, 8));
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<size_t> sizes;
  for (const UnitPlan& unit : plan->pipelines[0].stages[0].units) {
    sizes.push_back(unit.ranks.size());
    for (const RankPlan& rank : unit.ranks) {
      EXPECT_EQ(rank.device_model, unit.ranks[0].device_model);
      EXPECT_EQ(rank.device.value().substr(0, 2), unit.ranks[0].device.value().substr(0, 2));
      EXPECT_DOUBLE_EQ(rank.tp_share, 1.0 / static_cast<double>(unit.ranks.size()));
    }
  }
  EXPECT_THAT(sizes, testing::UnorderedElementsAre(2, 2, 2, 2)) << "2 A100, 4 T4, 2 V100";
  EXPECT_TRUE(IsOfWidths(PlanTurns(*setting, Choice({{0, 1, 2, 3, 4, 5, 6, 7, 8}}, 2, 8)).status())) << "3 V100";
  EXPECT_TRUE(IsOfWidths(PlanTurns(*Mixed(32, "gpt2-1.5b"), Choice({{0, 1, 2, 3}}, 2, 8)).status())) << "of 25 heads";
}

TEST(TurnStagesTest, KeepsWhatTheFactorSaysOfItsRounds) {
  const auto setting = Mixed(32, "gpt2-774m");
  const std::vector<std::vector<int>> groups = {{0, 1}, {2, 3, 4, 5}, {6, 7, 8}};
  const auto kept = [&](double factor, int64_t rounds) {
    const auto plan = PlanTurns(*setting, Choice(groups, 1, rounds, factor));
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::vector<int64_t> in_flight;
    for (const StagePlan& stage : plan->pipelines[0].stages) in_flight.push_back(stage.in_flight);
    return in_flight;
  };
  EXPECT_THAT(kept(1, 8), testing::ElementsAre(0, 0, 0));
  EXPECT_THAT(kept(2, 8), testing::ElementsAre(6, 4, 0));
  EXPECT_THAT(kept(2, 4), testing::ElementsAre(4, 4, 0));
  EXPECT_THAT(kept(2, 2), testing::ElementsAre(0, 0, 0));
}

TEST(TurnStagesTest, FactorsThatComeToTheSameNumbersAreTold) {
  const std::vector<std::vector<int>> groups = {{0, 1}, {2, 3, 4, 5}, {6, 7, 8}};
  const auto in_flight = [&](double factor, int64_t rounds) { return InFlightOf(Choice(groups, 1, rounds, factor)); };
  EXPECT_THAT(in_flight(1, 8), testing::ElementsAre(3, 2, 1));
  EXPECT_THAT(in_flight(2, 8), testing::ElementsAre(6, 4, 1));
  EXPECT_THAT(in_flight(4, 4), testing::ElementsAre(4, 4, 1)) << "no more than there are";
  EXPECT_EQ(in_flight(2, 4), in_flight(8, 4));
}

// Of two groups the nodes offer host memory, of the third they do not.
TEST(TurnStagesTest, DegreesByGroupAndOffload) {
  std::string cluster = ClusterText({{"n1", Cards("A100-40GB", 2)}, {"n2", Cards("T4", 4)}, {"n3", Cards("V100-16GB", 3)}});
  for (const char* node : {"n1", "n2"}) {
    const std::string name = absl::StrCat("name = \"", node, "\"\n");
    ASSERT_TRUE(absl::StrContains(cluster, name)) << cluster;
    cluster = absl::StrReplaceAll(cluster, {{name, name + "host_memory_gib = 64\n"}});
  }
  const auto setting = SettingOf(cluster, "gpt2-774m", 32, 512);
  TurnChoice choice = Choice({{0, 1}, {2, 3, 4, 5}, {6, 7}}, 1, 8);
  choice.tp = {1, 4, 2};
  choice.offload.optimizer = true;
  const auto plan = PlanTurns(*setting, choice);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<size_t> units;
  for (StagePlan stage : plan->pipelines[0].stages) {
    units.push_back(stage.units.size());
    ForEachRank(&stage, [](RankPlan& rank) {
      EXPECT_EQ(rank.offload.optimizer, NodeOf(rank.device) != NodeName("n3")) << rank.device.value();
    });
  }
  EXPECT_THAT(units, testing::ElementsAre(2, 1, 1));
}

TEST(TurnStagesTest, SaysWhatIsMissing) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 16)}}), "gpt2-124m", 16, 512);
  std::vector<std::vector<int>> groups;
  for (int d = 0; d < 13; ++d) groups.push_back({d});
  const absl::Status stages = PlanTurns(*setting, Choice(groups, 1, 4)).status();
  EXPECT_EQ(stages.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(stages.message()), HasSubstr("13 stages need more than the model's 12 layers"));
  const auto large = SettingOf(ClusterText({{"n1", Cards("T4", 1)}, {"n2", Cards("T4", 1)}}), "llama2-70b", 16, 512);
  const absl::Status memory = PlanTurns(*large, Choice({{0}, {1}}, 1, 4)).status();
  EXPECT_EQ(memory.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(memory.message()), HasSubstr("memory for"));
}

TEST(TurnStagesTest, TheBackwardOfASingleStageStaysWhole) {
  const auto setting = Mixed(24, "gpt2-774m");
  const std::vector<std::vector<int>> one = {{0, 1}}, two = {{0}, {1}};
  const auto plan_of = [&](const std::vector<std::vector<int>>& groups, ScheduleFamily schedule) {
    return PlanTurns(*setting, Choice(groups, 1, 8, 1, 1, schedule)).value();
  };
  const Plan split = plan_of(one, ScheduleFamily::kZeroBubble);
  EXPECT_EQ(split.schedule, ScheduleFamily::k1F1B);
  EXPECT_EQ(ToJson(split), ToJson(plan_of(one, ScheduleFamily::k1F1B)));
  EXPECT_EQ(plan_of(two, ScheduleFamily::kZeroBubble).schedule, ScheduleFamily::kZeroBubble);
}

}  // namespace
}  // namespace motley::planner
