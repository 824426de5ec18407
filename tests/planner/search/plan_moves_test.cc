#include "planner/search/plan_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cluster/cluster_file.h"
#include "planner/costs/workload.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "planner/search/polish.h"
#include "planner/strategies/auto/auto_stages.h"
#include "planner/strategies/catalog.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<Setting> Lab(int64_t batch, const char* model = "gpt2-774m") {
  auto workload = LoadModel(model);
  EXPECT_TRUE(workload.ok()) << workload.status();
  workload->global_batch = batch;
  workload->seq_len = 512;
  workload->dtype = DType::kFloat16;
  auto setting = Setting::Create(*LoadCluster("a6000-l4-p40"), *workload, PlanRequest(), nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

// Node by node: A6000 + L4, two P40, P100.
Plan ThreeStages(const Setting& setting, int64_t ministages) {
  SearchBudget budget = BudgetOf(setting.request);
  auto plan = PlanStages(setting, {{{0, 1}, {2, 3}, {4}}, ministages, 3, false}, &budget);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(PlanMovesTest, LayersAreDealtRoundRobinAndCountedBack) {
  PipelinePlan pipeline;
  pipeline.stages.resize(2);
  AssignLayers({5, 2}, 2, &pipeline);
  EXPECT_THAT(pipeline.stages[0].ministages, ElementsAre(LayerRange{0, 2}, LayerRange{4, 5}));
  EXPECT_THAT(pipeline.stages[1].ministages, ElementsAre(LayerRange{3, 3}, LayerRange{6, 6}));
  EXPECT_THAT(LayerCounts(pipeline), ElementsAre(5, 2));
}

TEST(PlanMovesTest, LadderGoesFromNothingToEverythingByFewestSecondsForAByte) {
  const auto setting = Lab(16);
  const std::vector<OpSet> ladder = RecomputeLadder(*setting, 0, 1);
  ASSERT_GE(ladder.size(), 3u);
  EXPECT_TRUE(ladder.front().empty());
  EXPECT_TRUE(ladder.back().all());
  int64_t before = setting->costs.SavedBytes(0, UnitKind::kLayer, ladder.front(), 4);
  for (size_t i = 1; i < ladder.size(); ++i) {
    const int64_t saved = setting->costs.SavedBytes(0, UnitKind::kLayer, ladder[i], 4);
    EXPECT_LE(saved, before) << ToText(ladder[i]);
    before = saved;
  }
}

TEST(PlanMovesTest, ARankIsWhatItsDeviceIsWhateverItsLabelSays) {
  const auto setting = Lab(16);
  for (int device = 0; device < setting->num_devices(); ++device) {
    RankPlan rank;
    rank.device = setting->cluster.devices[device].id;
    for (const char* label : {"", "a card of another name"}) {
      rank.device_model = label;
      EXPECT_EQ(KindOfRank(*setting, rank), setting->KindOf(device)) << rank.device.value();
    }
  }
  EXPECT_EQ(setting->FindDevice(DeviceId("nowhere/gpu0")), -1);
}

// What a plan needs of memory follows from its devices; labels are for people.
TEST(PlanMovesTest, SharesMoveAlikeWhateverTheLabelsSay) {
  const auto setting = Lab(24);
  const Plan plan = Evaluate(*setting, ThreeStages(*setting, 1)).value().plan;
  Plan renamed = plan;
  ForEachRank(renamed, [](RankPlan& rank) { rank.device_model = "?"; });
  const auto shares = [&](const Plan& of) {
    std::vector<double> list;
    for (const Move& move : Neighbours(*setting, of)) {
      if (move.what != "shares by free memory") continue;
      ForEachRank(move.plan, [&](const RankPlan& rank) { list.push_back(rank.shard_ratio); });
    }
    return list;
  };
  EXPECT_EQ(shares(plan).size(), 5u);
  EXPECT_EQ(shares(renamed), shares(plan));
}

TEST(PlanMovesTest, EveryNeighbourKeepsTheRules) {
  const auto setting = Lab(24);
  for (const int64_t ministages : {1, 3}) {
    auto priced = Evaluate(*setting, ThreeStages(*setting, ministages));
    ASSERT_TRUE(priced.ok()) << priced.status();
    const std::vector<Move> moves = Neighbours(*setting, priced->plan);
    EXPECT_GT(moves.size(), 20u);
    int allowed = 0;
    for (const Move& move : moves) allowed += Validate(move.plan, setting->workload.model).ok();
    // Interleaving may ask for counts that a neighbour lacks; everything else must hold.
    for (const Move& move : moves) {
      if (move.plan.schedule == ScheduleFamily::kInterleaved) continue;
      EXPECT_TRUE(Validate(move.plan, setting->workload.model).ok())
          << move.what << ": " << Validate(move.plan, setting->workload.model);
    }
    EXPECT_GT(allowed, 20);
  }
}

// Where host memory is known and a job's steps may go in turn: gradients wait beside the moments, and what a move leaves without
// its reason goes with it.
TEST(PlanMovesTest, GradientsAndStepsMoveAndEveryNeighbourKeepsTheRules) {
  auto workload = *LoadModel("gpt2-774m");
  workload.global_batch = 24;
  workload.seq_len = 512;
  workload.dtype = DType::kBFloat16;
  Cluster cluster = *LoadCluster("a6000-l4-p40");
  for (ClusterNode& node : cluster.nodes) node.host_memory_bytes = int64_t{256} << 30;
  PlanRequest request;
  request.runnable = request.steps_in_turn = true;
  const auto setting = *Setting::Create(cluster, workload, request, nullptr);
  const auto moves_of = [&](Plan plan) {
    const auto priced = Evaluate(*setting, std::move(plan));
    EXPECT_TRUE(priced.ok()) << priced.status();
    std::vector<std::string> texts;
    for (const Move& move : Neighbours(*setting, priced->plan)) {
      texts.push_back(move.what);
      if (move.plan.schedule == ScheduleFamily::kInterleaved) continue;  // may ask for counts that a neighbour lacks
      EXPECT_TRUE(Validate(move.plan, setting->workload.model).ok())
          << move.what << ": " << Validate(move.plan, setting->workload.model);
    }
    return texts;
  };
  Plan plan = ThreeStages(*setting, 3);
  const std::vector<std::string> alone = moves_of(plan);
  EXPECT_THAT(alone, testing::IsSupersetOf({"units stepped in turn", "gradients and optimizer offloaded"}));
  EXPECT_THAT(alone, testing::Not(testing::Contains(testing::HasSubstr("prefetch"))));
  ForEachRank(plan, [](RankPlan& rank) { rank.offload = OffloadKinds::All(); });
  EXPECT_THAT(moves_of(plan), testing::IsSupersetOf({"gradients kept on the device", "optimizer kept on the device",
                                                     "ZeRO stage 1", "units stepped in turn", "prefetch 2", "prefetch 4"}));
  ForEachRank(plan, [](RankPlan& rank) { rank.offload.gradients = false; });
  plan.optimizer_steps = OptimizerSteps::kInTurn;
  const std::vector<std::string> in_turn = moves_of(plan);
  EXPECT_THAT(in_turn, testing::Contains("stepped at the end"));
  EXPECT_THAT(in_turn, testing::Not(testing::Contains(testing::HasSubstr("gradients"))));
}

TEST(PlanMovesTest, PolishNeverMakesAPlanWorseAndIsDeterministic) {
  const auto setting = Lab(24);
  const Plan plan = ThreeStages(*setting, 1);
  const auto before = Evaluate(*setting, plan);
  ASSERT_TRUE(before.ok());
  SearchBudget budget = BudgetOf(setting->request), again = budget;
  const auto first = Polish(*setting, plan, &budget), second = Polish(*setting, plan, &again);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_LE(first->plan.predicted.step_seconds, before->plan.predicted.step_seconds);
  EXPECT_TRUE(first->does_not_fit.empty());
  EXPECT_EQ(ToJson(first->plan), ToJson(second->plan));
}

// What another climber has made of a plan changes neither the end nor what it costs.
TEST(PlanMovesTest, ClimbersThatShareWhatTheyHaveSeenEndAsEachAlone) {
  const auto setting = Lab(24);
  SeenPlans seen;
  for (const int64_t ministages : {1, 2, 1}) {
    const Plan plan = ThreeStages(*setting, ministages);
    SearchBudget budget = BudgetOf(setting->request), alone = budget;
    const auto together = Polish(*setting, plan, &budget, &seen), apart = Polish(*setting, plan, &alone);
    ASSERT_TRUE(together.ok() && apart.ok());
    EXPECT_EQ(ToJson(together->plan), ToJson(apart->plan));
    EXPECT_EQ(budget.nodes, alone.nodes);
  }
}

TEST(PlanMovesTest, BudgetEndsTheSearch) {
  const auto setting = Lab(24);
  SearchBudget none;
  const auto unchanged = Polish(*setting, ThreeStages(*setting, 1), &none);
  ASSERT_TRUE(unchanged.ok());
  SearchBudget budget = BudgetOf(setting->request);
  const auto climbed = Polish(*setting, ThreeStages(*setting, 1), &budget);
  ASSERT_TRUE(climbed.ok());
  EXPECT_LE(climbed->plan.predicted.step_seconds, unchanged->plan.predicted.step_seconds);
}

TEST(AutoTest, NeverWorseThanAnyStrategyAndFits) {
  for (const int64_t batch : {16, 48}) {
    const auto setting = Lab(batch, "gpt2-1.5b");
    const auto chosen = PlanAuto(*setting);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    const auto priced = Evaluate(*setting, *chosen);
    ASSERT_TRUE(priced.ok()) << priced.status();
    EXPECT_THAT(priced->does_not_fit, testing::IsEmpty());
    for (const CatalogEntry& entry : Catalog()) {
      const auto plan = entry.plan(*setting);
      if (!plan.ok()) continue;
      const auto other = Evaluate(*setting, *plan);
      if (!other.ok() || !other->does_not_fit.empty()) continue;
      EXPECT_LE(priced->plan.predicted.step_seconds, other->plan.predicted.step_seconds * (1 + 1e-9)) << entry.name;
    }
    EXPECT_GE(priced->plan.predicted.step_seconds, FindLowerBound(*setting).seconds * (1 - 1e-9));
  }
}

}  // namespace
}  // namespace motley::planner
