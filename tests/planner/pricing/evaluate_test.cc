#include "planner/pricing/evaluate.h"

#include <algorithm>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/each_rank.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EvaluateTest : public testing::Test {
 protected:
  EvaluateTest() : setting_(MakeSetting(Nodes({{"T4", "T4"}, {"A10G"}}), WorkOf(MediumModel(8, false), 16))) {}
  // Two T4 and an A10G, which also has a stage of its own when `stages` is 2.
  Plan Small(int stages = 1) const {
    if (stages == 1) {
      return PlanOf(*setting_, ScheduleFamily::kLayered, {{{StageOf(*setting_, 0, {{2, 2}, {2, 2}, {4, 4}}, {{0, 7}})}}});
    }
    return PlanOf(
        *setting_, ScheduleFamily::k1F1B,
        {{{StageOf(*setting_, 0, {{2, 2, 2, 2}, {2, 2, 2, 2}}, {{0, 3}}), StageOf(*setting_, 2, {{4, 4, 4, 4}}, {{4, 7}})}}});
  }
  std::unique_ptr<Setting> setting_;
};

TEST_F(EvaluateTest, FillsInEveryPrediction) {
  for (const int stages : {1, 2}) {
    const auto evaluation = Evaluate(*setting_, Small(stages));
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    const PlanPrediction& predicted = evaluation->plan.predicted;
    EXPECT_THAT(evaluation->does_not_fit, IsEmpty());
    EXPECT_GT(predicted.step_seconds, 0);
    EXPECT_DOUBLE_EQ(predicted.step_seconds, ToSeconds(evaluation->timeline.end));
    EXPECT_DOUBLE_EQ(predicted.tokens_per_second, 16 * 256 / predicted.step_seconds);
    double peaks = 0;
    ForEachRank(evaluation->plan, [&](const RankPlan& rank) {
      peaks += setting_->cluster.FlopsPerSecond(setting_->KindOf(setting_->FindDevice(rank.device)), DType::kFloat32);
    });
    EXPECT_DOUBLE_EQ(predicted.mfu, setting_->costs.ModelFlops(16) / predicted.step_seconds / peaks);
    EXPECT_DOUBLE_EQ(predicted.hfu, predicted.mfu) << "nothing is recomputed";
    EXPECT_LT(predicted.hfu, 1);
    EXPECT_DOUBLE_EQ(predicted.tokens_per_dollar, predicted.tokens_per_second * 3600 / 4);
    EXPECT_GT(predicted.idle_share, 0);
    EXPECT_LT(predicted.idle_share, 1);
    EXPECT_THAT(predicted.binding_constraint, testing::Not(IsEmpty()));
    EXPECT_TRUE(predicted.estimated);         // nobody measured this model
    EXPECT_THAT(predicted.notes, SizeIs(2));  // a T4, an A10G
    EXPECT_LT(predicted.low_seconds, predicted.step_seconds);
    EXPECT_GT(predicted.high_seconds, predicted.step_seconds);
    for (const StagePlan& stage : evaluation->plan.pipelines[0].stages) {
      for (const UnitPlan& unit : stage.units) {
        EXPECT_GT(unit.ranks[0].predicted.busy_seconds, 0);
        EXPECT_EQ(unit.ranks[0].predicted.memory.total(), unit.ranks[0].predicted.peak_bytes);
        EXPECT_FALSE(unit.ranks[0].device_model.empty());
      }
    }
  }
}

TEST_F(EvaluateTest, UtilisationIsOfTheDevicesThatThePlanUses) {
  const auto mfu = [&](std::vector<CardKind> kinds) {
    setting_->cluster.kinds = std::move(kinds);
    const Plan one = PlanOf(*setting_, ScheduleFamily::kLayered, {{{StageOf(*setting_, 0, {{16}}, {{0, 7}})}}});
    return Evaluate(*setting_, one)->plan.predicted;
  };
  std::vector<CardKind> kinds = setting_->cluster.kinds;
  ASSERT_EQ(setting_->KindOf(0), 0);
  ASSERT_GT(kinds.size(), 1u);
  const PlanPrediction alone = mfu(kinds);
  EXPECT_GT(alone.mfu, 0.2) << "nobody waits";
  EXPECT_DOUBLE_EQ(alone.ideal_seconds(), setting_->costs.ModelFlops(16) / kinds[0].fp32_flops);
  kinds[1].peak_known = false;
  EXPECT_EQ(mfu(kinds).mfu, alone.mfu) << "the other card is not used";
  kinds[0].peak_known = false;
  EXPECT_EQ(mfu(kinds).mfu, 0) << "a CPU has none";
  EXPECT_EQ(mfu(kinds).hfu, 0);
  EXPECT_EQ(mfu(kinds).idle_share, alone.idle_share);
}

TEST_F(EvaluateTest, UtilisationCountsWhatIsRecomputedAndNothingElse) {
  Plan plan = Small();
  ForEachRank(plan, [](RankPlan& rank) { rank.recompute = OpSet::All(); });
  const auto evaluation = Evaluate(*setting_, plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  const PlanPrediction& predicted = evaluation->plan.predicted;
  // A third of a layer's arithmetic is its forward; the head's is not made again.
  const double layers = 8 * setting_->costs.RecomputeFlops(OpSet::All(), 16), model = setting_->costs.ModelFlops(16);
  EXPECT_GT(layers / model, 0.25);
  EXPECT_LT(layers / model, 1.0 / 3);
  EXPECT_DOUBLE_EQ(predicted.hfu / predicted.mfu, 1 + layers / model);
  // Of a tensor-parallel unit every rank makes its own part again.
  EXPECT_LT(setting_->costs.RecomputeFlops(OpSet::All(), 16, 0.5), 0.51 * layers / 8);
}

TEST_F(EvaluateTest, AUtilisationThatCannotBeIsSaid) {
  for (int kind = 0; kind < setting_->costs.num_kinds(); ++kind) setting_->costs.ScaleSeconds(kind, 1e-3);
  // On one device nothing else takes time.
  const auto evaluation =
      Evaluate(*setting_, PlanOf(*setting_, ScheduleFamily::kLayered, {{{StageOf(*setting_, 0, {{16}}, {{0, 7}})}}}));
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_THAT(evaluation->plan.predicted.notes, testing::Contains(testing::HasSubstr("utilisation above 100 %")));
}

TEST_F(EvaluateTest, SaysWhoLacksHowMuchAndPricesAllTheSame) {
  Cluster cluster = setting_->cluster;
  cluster.kinds[0].memory_bytes = int64_t{1} << 30;
  const auto small = MakeSetting(cluster, setting_->workload);
  const auto evaluation = Evaluate(*small, Small());
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  ASSERT_THAT(evaluation->does_not_fit, SizeIs(1)) << "two alike are told once";
  EXPECT_THAT(evaluation->does_not_fit[0], HasSubstr("n0/gpu0 (T4) and 1 more need"));
  EXPECT_THAT(evaluation->does_not_fit[0], HasSubstr("usable each, lack"));
  EXPECT_EQ(evaluation->plan.predicted.binding_constraint, "memory of n0/gpu0");
  EXPECT_GT(evaluation->plan.predicted.step_seconds, 0);
}

TEST_F(EvaluateTest, HostMemoryIsCountedByNode) {
  Plan plan = Small();
  for (UnitPlan& unit : plan.pipelines[0].stages[0].units) unit.ranks[0].offload.optimizer = true;
  EXPECT_THAT(Evaluate(*setting_, plan)->does_not_fit, IsEmpty());
  Cluster cluster = setting_->cluster;
  cluster.nodes[1].host_memory_bytes = 0;
  const auto evaluation = Evaluate(*MakeSetting(cluster, setting_->workload), plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  ASSERT_THAT(evaluation->does_not_fit, SizeIs(1));
  EXPECT_THAT(evaluation->does_not_fit[0], HasSubstr("the host memory of n1"));
}

TEST_F(EvaluateTest, UnpricedNodesGiveNoTokensPerDollar) {
  Cluster cluster = setting_->cluster;
  cluster.nodes[1].price_per_hour = 0;
  EXPECT_EQ(Evaluate(*MakeSetting(cluster, setting_->workload), Small())->plan.predicted.tokens_per_dollar, 0);
}

// Two stages whose border takes as long as a forward pass. With k microbatches in flight the first stage turns k of them around
// in 2 (f + b) and two borders' time, or works without a pause.
TEST(EvaluateInFlightTest, MoreHidesASlowLinkAndCostsMemoryLessSavesIt) {
  const Workload work = WorkOf(MediumModel(8, false), 24);
  const auto fast = MakeSetting(Nodes({{"T4"}, {"T4"}}), work);
  const double forward = 4 * fast->costs.ForwardSeconds(0, UnitKind::kLayer, 1);
  const auto setting =
      MakeSetting(Nodes({{"T4"}, {"T4"}}, 12e9, static_cast<double>(fast->costs.BoundaryBytes(1)) / forward), work);
  const auto evaluate = [&](int64_t in_flight) {
    const std::vector<std::vector<int64_t>> singles = {std::vector<int64_t>(24, 1)};
    Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B,
                       {{{StageOf(*setting, 0, singles, {{0, 3}}, 0), StageOf(*setting, 1, singles, {{4, 7}}, 0)}}});
    plan.pipelines[0].stages[0].in_flight = in_flight;
    return Evaluate(*setting, plan).value().plan;
  };
  const auto peak = [](const Plan& plan, size_t stage) {
    return plan.pipelines[0].stages[stage].units[0].ranks[0].predicted.peak_bytes;
  };
  const Plan one = evaluate(1), own = evaluate(0), two = evaluate(2), four = evaluate(4);
  EXPECT_EQ(two.predicted.step_seconds, own.predicted.step_seconds) << "two is what 1F1B keeps on the first of two stages";
  EXPECT_EQ(peak(two, 0), peak(own, 0));
  EXPECT_LT(four.predicted.step_seconds, 0.9 * own.predicted.step_seconds);
  EXPECT_GT(one.predicted.step_seconds, 1.3 * own.predicted.step_seconds);
  // A microbatch keeps as much whether it is the second, the third or the fourth.
  const int64_t each = peak(own, 0) - peak(one, 0);
  EXPECT_GT(each, 0);
  EXPECT_EQ(peak(four, 0) - peak(own, 0), 2 * each);
  EXPECT_EQ(peak(four, 1), peak(one, 1)) << "the other stage does not change";
}

// The first stage's two T4 are one class, with two microbatches. The A10G has the first one's samples, the T4 and the V100 those
// of a card each of the second one.
TEST(EvaluateClassTest, EveryPieceOfAClassWaitsForWhatItsCardsCompute) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "A10G", "V100-16GB", "T4"}}), WorkOf(MediumModel(8, false), 8));
  const Plan plan =
      PlanOf(*setting, ScheduleFamily::kLayered,
             {{{StageOf(*setting, 0, {{2, 2}, {2, 2}}, {{0, 3}}, 0), StageOf(*setting, 2, {{4}, {2}, {2}}, {{4, 7}}, 0)}}});
  const auto evaluation = Evaluate(*setting, plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  const StepGraph& graph = evaluation->graph;
  Picoseconds made = 0;                 // by the class
  std::map<int32_t, Picoseconds> used;  // first, by the other stage's actors
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    if (graph.tasks[t].kind != TaskKind::kForward) continue;
    const int32_t actor = graph.tasks[t].lanes[0] / kNumLanes;
    const TaskSpan& span = evaluation->timeline.spans[t];
    if (graph.actors[static_cast<size_t>(actor)].stage == 0) {
      EXPECT_EQ(graph.actors[static_cast<size_t>(actor)].count, 2);
      made = std::max(made, span.end);
    } else {
      used.try_emplace(actor, span.begin);
    }
  }
  std::vector<Picoseconds> begins;
  for (const auto& [actor, begin] : used) begins.push_back(begin);
  std::sort(begins.begin(), begins.end());
  ASSERT_THAT(begins, SizeIs(3));
  EXPECT_GT(begins[1], made);
}

TEST_F(EvaluateTest, RefusesWhatIsNotAPlanOfThisSetting) {
  const auto message = [&](const Plan& plan) {
    const auto status = Evaluate(*setting_, plan).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  Plan plan = Small();
  plan.pipelines[0].stages[0].units[0].microbatches = {1};
  EXPECT_THAT(message(plan), HasSubstr("add up to"));
  plan = Small();
  plan.pipelines[0].stages[0].units[0].ranks[0].device = DeviceId("elsewhere/gpu0");
  EXPECT_THAT(message(plan), HasSubstr("elsewhere/gpu0 is not in the cluster"));
  plan = Small();
  plan.seq_len = 128;
  EXPECT_THAT(message(plan), HasSubstr("seq_len is 128, the workload's 256"));
  plan = Small();
  plan.dtype = DType::kFloat16;
  EXPECT_THAT(message(plan), HasSubstr("dtype is float16"));
  plan = Small();
  plan.global_batch = 12;
  plan.pipelines[0].stages[0].units[0].microbatches = {};
  EXPECT_THAT(message(plan), HasSubstr("global_batch is 12"));
}

// Two pipelines, one of a stage of two units, in which every rank is to keep all state.
TEST_F(EvaluateTest, ReplicasAreKeptByPublishedSystemsAlone) {
  const Cluster cluster = Nodes({{"T4", "T4"}, {"A10G"}}, 12e9, 1e9);
  const auto evaluate = [&](Fidelity fidelity, bool runnable, int zero) {
    PlanRequest request;
    request.fidelity = fidelity;
    request.runnable = runnable;
    const auto setting = *Setting::Create(cluster, WorkOf(MediumModel(8, false), 12), request, nullptr);
    PipelinePlan two, one;
    two.stages = {StageOf(*setting, 0, {{2, 2}, {2}}, {{0, 7}}, zero)};
    one.stages = {StageOf(*setting, 2, {{2, 2, 2}}, {{0, 7}}, zero)};
    if (zero == 0) two.stages[0].units[0].ranks[0].shard_ratio = 0.7;  // not looked at
    Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {two, one});
    plan.pipelines_zero_stage = zero;
    return Evaluate(*setting, plan).value().plan;
  };
  const Plan shared = evaluate(Fidelity::kTuned, false, 1);
  for (const auto& [fidelity, runnable] :
       {std::pair(Fidelity::kTuned, false), {Fidelity::kTuned, true}, {Fidelity::kPublished, true}})
    EXPECT_EQ(ToJson(evaluate(fidelity, runnable, 0)), ToJson(evaluate(fidelity, runnable, 1)));
  EXPECT_EQ(evaluate(Fidelity::kTuned, false, 0).predicted.step_seconds, shared.predicted.step_seconds);
  const Plan published = evaluate(Fidelity::kPublished, false, 0);
  EXPECT_EQ(published.pipelines_zero_stage, 0);
  EXPECT_EQ(published.pipelines[0].stages[0].zero_stage, 0);
  const auto moments = [](const Plan& plan) { return plan.pipelines[0].stages[0].units[0].ranks[0].predicted.memory.optimizer; };
  EXPECT_NEAR(static_cast<double>(moments(published)), 4 * static_cast<double>(moments(shared)), 64);
  EXPECT_EQ(published.predicted.step_seconds, shared.predicted.step_seconds) << "the same programs";
}

TEST_F(EvaluateTest, FasterCardsAndLinksAreNeverSlower) {
  for (const int stages : {1, 2}) {
    const double before = Evaluate(*setting_, Small(stages))->plan.predicted.step_seconds;
    Cluster cluster = setting_->cluster;
    for (ClusterNode& node : cluster.nodes) node.nic_bytes_per_second *= 2;
    const double links = Evaluate(*MakeSetting(cluster, setting_->workload), Small(stages))->plan.predicted.step_seconds;
    EXPECT_LE(links, before);
    for (CardKind& kind : cluster.kinds) kind.fp32_flops *= 1.5;
    EXPECT_LE(Evaluate(*MakeSetting(cluster, setting_->workload), Small(stages))->plan.predicted.step_seconds, links);
  }
}

}  // namespace
}  // namespace motley::planner
