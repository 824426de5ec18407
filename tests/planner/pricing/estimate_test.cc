// EstimatePlan against Evaluate. docs/inside/simulator.md has the measured distance.
#include <cmath>
#include <cstdio>
#include <map>

#include "gtest/gtest.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/pricing/worst_memory.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

struct Distance {
  double sum = 0, worst = 0;
  int plans = 0;
  void Add(double distance) {
    sum += std::abs(distance);
    worst = std::max(worst, std::abs(distance));
    ++plans;
  }
  double mean() const { return plans > 0 ? sum / plans : 0; }
};

std::map<std::string, Distance> Distances(bool calm) {
  RandomPlans random(29);
  std::map<std::string, Distance> by_schedule;
  for (int i = 0; i < 600; ++i) {
    const auto setting = random.NextSetting(calm);
    const Plan plan = random.Next(*setting);
    if (!Validate(plan, setting->workload.model).ok()) continue;
    const auto evaluation = Evaluate(*setting, plan);
    EXPECT_TRUE(evaluation.ok()) << evaluation.status();
    if (!evaluation.ok()) continue;
    const auto price = EstimatePlan(*setting, evaluation->plan);
    EXPECT_TRUE(price.ok()) << price.status();
    if (!price.ok()) continue;
    const double step = evaluation->plan.predicted.step_seconds;
    const std::string kind = plan.pipelines.size() > 1              ? "several pipelines"
                             : plan.pipelines[0].stages.size() == 1 ? "one stage"
                                                                    : std::string(ScheduleName(plan.schedule));
    by_schedule[kind].Add(price->step_seconds / step - 1);
    // The graph may keep more in flight than the formula says, never less. With more of it less may wait for halves of backwards.
    EXPECT_LE(price->worst_memory, 1.005 * WorstMemory(*setting, evaluation->plan));
  }
  for (const auto& [kind, distance] : by_schedule) {
    std::printf("%-18s %4d plans: mean %4.1f %%, worst %4.1f %%\n", kind.c_str(), distance.plans, 100 * distance.mean(),
                100 * distance.worst);
  }
  return by_schedule;
}

TEST(EstimateTest, StaysCloseToTheSimulatorWhereLinksAreNotContended) {
  const std::map<std::string, double> worst = {
      {"one stage", 0.063},   {"layered", 0.175},         {"gpipe", 0.17}, {"1f1b", 0.058}, {"interleaved", 0.062},
      {"zero_bubble", 0.085}, {"several pipelines", 0.22}};
  for (const auto& [kind, distance] : Distances(true)) {
    EXPECT_LT(distance.mean(), 0.016) << kind;
    EXPECT_LT(distance.worst, worst.at(kind)) << kind;
  }
}

TEST(EstimateTest, IsOfTheRightSizeWhereTheyAre) {
  for (const auto& [kind, distance] : Distances(false)) EXPECT_LT(distance.mean(), 0.18) << kind;
}

void ExpectWithin(double part, const Setting& setting, const Plan& plan) {
  const auto evaluation = Evaluate(setting, plan);
  const auto price = EstimatePlan(setting, plan);
  ASSERT_TRUE(evaluation.ok() && price.ok()) << evaluation.status() << price.status();
  EXPECT_NEAR(price->step_seconds / evaluation->plan.predicted.step_seconds, 1, part) << ScheduleName(plan.schedule);
}

// Microbatches that come from unlike cards at unlike times.
TEST(EstimateTest, FollowsTheMicrobatchesOfUnlikeCards) {
  const auto setting = MakeSetting(Nodes({{"T4", "A10G", "T4"}}, 400e9, 200e9), WorkOf(MediumModel(8, false), 32));
  for (const ScheduleFamily schedule : {ScheduleFamily::kGPipe, ScheduleFamily::kLayered}) {
    for (const OpSet recompute : {OpSet::None(), OpSet::All()}) {
      const StagePlan first = StageOf(*setting, 0, {{2, 2, 2, 2}, {6, 6, 6, 6}}, {{0, 3}}, 1, recompute);
      const StagePlan second = StageOf(*setting, 2, {{4, 4, 4, 4, 4, 4, 4, 4}}, {{4, 7}}, 0, recompute);
      ExpectWithin(0.02, *setting, PlanOf(*setting, schedule, {{{first, second}}}));
    }
  }
}

// Two virtual stages a stage, of unlike cards, with as many microbatches as fill the pipeline and with fewer.
TEST(EstimateTest, FollowsUnlikeStagesOfSeveralMinistages) {
  for (const int64_t rounds : {4, 8, 16}) {
    const auto setting =
        MakeSetting(Nodes({{"T4", "A10G"}, {"V100-16GB", "T4"}}, 400e9, 25e9), WorkOf(MediumModel(16, false), 2 * rounds));
    for (const ScheduleFamily schedule : {ScheduleFamily::kInterleaved, ScheduleFamily::kZeroBubbleV}) {
      const auto dealt = DealLayers(16, 4, 2, TraitsOf(schedule).map);
      PipelinePlan pipeline;
      for (int s = 0; s < 4; ++s) {
        const std::vector<int64_t> microbatches(static_cast<size_t>(rounds), 2);
        pipeline.stages.push_back(StageOf(*setting, s, {microbatches}, dealt[static_cast<size_t>(s)], 0));
      }
      ExpectWithin(0.01, *setting, PlanOf(*setting, schedule, {pipeline}));
    }
  }
}

// Where every round is gathered or reduced, each lasts as long as its slowest rank takes.
TEST(EstimateTest, RanksThatMeetInEveryRoundGoThroughThemTogether) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}}, 400e9, 200e9), WorkOf(MediumModel(8, false), 32));
  for (const ScheduleFamily schedule : {ScheduleFamily::kGPipe, ScheduleFamily::k1F1B}) {
    for (const int zero : {2, 3}) {
      ExpectWithin(0.03, *setting,
                   PlanOf(*setting, schedule, {{{StageOf(*setting, 0, {{12, 2, 2}, {2, 2, 12}}, {{0, 7}}, zero)}}}));
    }
  }
}

// Activations go to the host and come back over one lane, which is slower than the compute here.
TEST(EstimateTest, KnowsWhatOffloadedActivationsCost) {
  const auto setting = MakeSetting(Nodes({{"A100-40GB", "A100-40GB"}}, 400e9, 200e9), WorkOf(MediumModel(8, false), 32));
  for (const bool alone : {true, false}) {
    PipelinePlan pipeline;
    const std::vector<int64_t> microbatches(8, 4);
    if (alone) pipeline.stages = {StageOf(*setting, 0, {microbatches}, {{0, 7}}, 0)};
    if (!alone)
      pipeline.stages = {StageOf(*setting, 0, {microbatches}, {{0, 3}}, 0), StageOf(*setting, 1, {microbatches}, {{4, 7}}, 0)};
    Plan plan = PlanOf(*setting, ScheduleFamily::kLayered, {pipeline});
    for (StagePlan& stage : plan.pipelines[0].stages) stage.units[0].ranks[0].offload.activations = true;
    ExpectWithin(0.06, *setting, plan);
  }
}

// What several pipelines share they gather and sum once a step.
TEST(EstimateTest, SeveralPipelinesGatherTheirShardsForEveryMicrobatch) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}, {"T4", "T4"}}, 12e9, 3e9), WorkOf(MediumModel(8, false), 32));
  for (const ScheduleFamily schedule : {ScheduleFamily::k1F1B, ScheduleFamily::kLayered}) {
    std::vector<PipelinePlan> pipelines(2);
    for (int p = 0; p < 2; ++p) pipelines[p].stages = {StageOf(*setting, 2 * p, {{2, 2, 2, 2}, {2, 2, 2, 2}}, {{0, 7}}, 3)};
    ExpectWithin(0.05, *setting, PlanOf(*setting, schedule, std::move(pipelines)));
  }
}

// Pipelines of single cards with equal microbatches, one stage after the other over the cluster, under both schedules in turn,
// with fewer and more in flight than their own.
template <typename Function>
void ForPipelinesInTurn(const Setting& setting, Function function) {
  const auto stages = static_cast<size_t>(setting.num_devices());
  const auto dealt = DealLayers(12, static_cast<int64_t>(stages), 1);
  for (const ScheduleFamily schedule : {ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
    for (const int64_t more : {-1, 0, 1, 3}) {
      PipelinePlan pipeline;
      for (size_t s = 0; s < stages; ++s) {
        pipeline.stages.push_back(StageOf(setting, static_cast<int>(s), {std::vector<int64_t>(16, 2)}, dealt[s], 0));
        const auto own = static_cast<int64_t>(stages - s);
        if (more != 0 && own > 1) pipeline.stages.back().in_flight = own + more;
      }
      const Plan plan = PlanOf(setting, schedule, {pipeline});
      const auto evaluation = Evaluate(setting, plan);
      const auto price = EstimatePlan(setting, plan);
      ASSERT_TRUE(evaluation.ok() && price.ok()) << evaluation.status() << price.status();
      EXPECT_NEAR(price->worst_memory, WorstMemory(setting, evaluation->plan), 1e-9);
      function(price->step_seconds / evaluation->plan.predicted.step_seconds - 1,
               testing::Message() << ScheduleName(schedule) << ", " << stages << " stages, " << more << " more in flight");
    }
  }
}

Distance InTurn(const std::vector<std::vector<std::vector<std::string>>>& clusters, double most, const char* what) {
  Distance distance;
  for (const double nic : {5e7, 1e8, 3e8, 1e9, 25e9}) {
    for (const auto& nodes : clusters) {
      ForPipelinesInTurn(*MakeSetting(Nodes(nodes, 400e9, nic), WorkOf(MediumModel(12, false), 32)),
                         [&](double off, const testing::Message& plan) {
                           distance.Add(off);
                           EXPECT_LT(std::abs(off), most) << plan << ", NIC of " << nic << " B/s";
                         });
    }
  }
  std::printf("%-18s %4d plans: mean %4.1f %%, worst %4.1f %%\n", what, distance.plans, 100 * distance.mean(),
              100 * distance.worst);
  return distance;
}

// One border goes over network cards, which nothing else uses. A rank receives in one order, whichever way it comes: a gradient
// that is there waits behind activations on the slow border.
TEST(EstimateTest, FollowsPipelinesInTurnOverASlowBorder) {
  const Distance distance =
      InTurn({{{"T4"}, {"A10G"}}, {{"T4", "A10G"}, {"T4"}}, {{"T4", "A10G"}, {"V100-16GB", "T4"}}}, 0.001, "one slow border");
  EXPECT_EQ(distance.plans, 120);
}

// A node between two others gets samples and gradients over one card, which the estimator takes for free.
TEST(EstimateTest, StaysNearPipelinesInTurnWhoseStagesShareCards) {
  EXPECT_LT(InTurn({{{"T4"}, {"A10G"}, {"T4"}}, {{"T4"}, {"A10G"}, {"V100-16GB"}, {"T4"}}}, 0.03, "all borders slow").mean(),
            0.001);
}

// A tied table is on the way before the first forward of either end and behind the last backward of both, over a network that
// takes as long for it as the cards for all else.
TEST(EstimateTest, EndsOfATiedModelExchangeItsTable) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    const auto setting =
        MakeSetting(Nodes({{"T4"}, {"A10G", "A10G"}, {"T4"}}, 12e9, 2e8), WorkOf(MediumModel(8, true), 8, dtype));
    const StagePlan first = StageOf(*setting, 0, {{2, 2, 2, 2}}, {{0, 2}}, 0);
    const StagePlan middle = StageOf(*setting, 1, {{1, 1, 1, 1}, {1, 1, 1, 1}}, {{3, 5}}, 1);
    const StagePlan last = StageOf(*setting, 3, {{2, 2, 2, 2}}, {{6, 7}}, 0);
    const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{{first, middle, last}}});
    ExpectWithin(0.05, *setting, plan);
    const auto merged = Evaluate(*setting, plan), priced = Price(*setting, plan);
    ASSERT_TRUE(merged.ok() && priced.ok()) << merged.status() << priced.status();
    EXPECT_NEAR(merged->plan.predicted.step_seconds / priced->plan.predicted.step_seconds, 1, 0.03);
  }
}

// The engine gathers a half job's parameters in two bytes and sums its gradients in four.
TEST(EstimateTest, SumsBetweenPipelinesOfAHalfJobAreInFloat32) {
  Workload workload = WorkOf(MediumModel(8, false), 8, DType::kFloat16);
  workload.state = StateKeeping::kEngine;
  const double slow_nic = 2e8;
  const auto setting = MakeSetting(Nodes({{"T4"}, {"T4"}}, 12e9, slow_nic), workload);
  std::vector<PipelinePlan> pipelines(2);
  for (int p = 0; p < 2; ++p) pipelines[p].stages = {StageOf(*setting, p, {{4}}, {{0, 7}}, 0)};
  Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, std::move(pipelines));
  plan.pipelines_zero_stage = 0;
  const auto evaluation = Evaluate(*setting, plan);
  const auto price = EstimatePlan(*setting, plan);
  ASSERT_TRUE(evaluation.ok() && price.ok()) << evaluation.status() << price.status();
  EXPECT_NEAR(price->step_seconds / evaluation->plan.predicted.step_seconds, 1, 0.05);
}

}  // namespace
}  // namespace motley::planner
