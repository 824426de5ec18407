// Schedules of whole plans: samples dealt, orders mended.
#include "planner/scheduling/make_schedule.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/lowering/program_writer.h"
#include "planner/memory/program_memory.h"
#include "planner/plan/schedule_check.h"
#include "planner/plan/schedule_listing.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using testing::ElementsAre;

std::unique_ptr<Setting> TwoNodes(int64_t layers, int64_t batch) {
  return MakeSetting(Nodes({{"T4", "T4"}, {"T4", "T4"}}), WorkOf(MediumModel(layers, false), batch));
}

// Each stage's order.
std::vector<std::string> Orders(const Setting& setting, const Plan& plan) {
  const auto schedule = MakeTrainingSchedule(setting, plan);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  std::vector<std::string> orders;
  for (const StageSchedule& stage : schedule->pipelines[0].stages) orders.push_back(ToText(stage.actions));
  return orders;
}

TEST(MakeScheduleTest, EqualStagesKeepTheFamilysOrder) {
  const auto setting = TwoNodes(4, 4);
  const auto stage = [&](int s) { return StageOf(*setting, s, {{1, 1, 1, 1}}, {{2 * s, 2 * s + 1}}, 0); };
  EXPECT_THAT(Orders(*setting, PlanOf(*setting, ScheduleFamily::k1F1B, {{{stage(0), stage(1)}}})),
              ElementsAre("0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"));
}

// The second stage's microbatch takes four of the first's: two in flight would wait for ever.
TEST(MakeScheduleTest, SmallMicrobatchesBeforeLargeOnesRunAhead) {
  const auto setting = TwoNodes(4, 8);
  const Plan plan =
      PlanOf(*setting, ScheduleFamily::k1F1B,
             {{{StageOf(*setting, 0, {std::vector<int64_t>(8, 1)}, {{0, 1}}, 0), StageOf(*setting, 1, {{4, 4}}, {{2, 3}}, 0)}}});
  EXPECT_THAT(Orders(*setting, plan),
              ElementsAre("0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7", "1F0 1B0 1F1 1B1"));
}

TEST(MakeScheduleTest, ARankWithoutMicrobatchesComputesNothing) {
  const auto setting = TwoNodes(2, 3);
  const auto schedule = MakeTrainingSchedule(
      *setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{2, 1}, {}}, {{0, 1}})}}}));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const StageSchedule& stage = schedule->pipelines[0].stages[0];
  EXPECT_EQ(ToText(stage.actions), "0F0-1 0B0-1");
  EXPECT_EQ(ToText(ActionsOf(stage, 0)), "0F0-1 0B0-1");
  EXPECT_EQ(ToText(ActionsOf(stage, 1)), "");
  EXPECT_EQ(ToText(stage.members[0]), "2@0 1@2");
}

// Zorse section 3.2: the i-th microbatch that a stage completes goes to whoever is due. The A10G is faster than the T4.
TEST(MakeScheduleTest, SamplesAreDealtInTheOrderInWhichTheyAreDone) {
  const auto setting = MakeSetting(Nodes({{"T4", "A10G"}}), WorkOf(MediumModel(2, false), 4));
  const auto schedule = MakeTrainingSchedule(
      *setting, PlanOf(*setting, ScheduleFamily::kLayered, {{{StageOf(*setting, 0, {{1}, {1, 1, 1}}, {{0, 1}})}}}));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->pipelines[0].stages[0].members[1].front().first, 0);
  EXPECT_GT(schedule->pipelines[0].stages[0].members[0].front().first, 0);
}

// Under 1F1B units of equal counts keep the same pace, whatever their speeds: the last digit of a sum of seconds deals nothing.
TEST(MakeScheduleTest, UnitsOfEqualCountsTakeTurns) {
  const std::vector<std::string> cards = {"T4", "A10G", "V100-16GB", "A100-40GB"};
  for (size_t c = 1; c < cards.size(); ++c) {
    const auto setting = MakeSetting(Nodes({{cards[c - 1], cards[c]}}), WorkOf(MediumModel(2, false), 28));
    for (int64_t size = 1; size <= 2; ++size) {
      const std::vector<int64_t> microbatches(static_cast<size_t>(14 / size), size);
      const auto schedule = MakeTrainingSchedule(
          *setting, PlanOf(*setting, ScheduleFamily::k1F1B, {{{StageOf(*setting, 0, {microbatches, microbatches}, {{0, 1}})}}}));
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      for (int64_t member = 0; member < 2; ++member) {
        for (const ScheduledMicrobatch& m : schedule->pipelines[0].stages[0].members[static_cast<size_t>(member)]) {
          EXPECT_EQ(m.first, (2 * m.round + member) * size)
              << cards[c - 1] << " and " << cards[c] << ", microbatches of " << size;
        }
      }
    }
  }
}

// Whatever the plan says it keeps; of the ranks some have one microbatch less, or none.
TEST(MakeScheduleTest, AStageAloneMayHaveAnyNumberOfMinistages) {
  const auto setting = TwoNodes(8, 9);
  using enum ScheduleFamily;
  for (const ScheduleFamily family : {kLayered, kGPipe, k1F1B, kInterleaved, kZeroBubble, kZeroBubbleV}) {
    for (const int64_t ministages : {1, 2, 3, 8}) {
      for (const int64_t in_flight : {0, 1, 5, 9, 40}) {
        if (in_flight > 0 && !TraitsOf(family).takes_in_flight) continue;
        const std::vector<int64_t> five(5, 1), four(4, 1);
        StagePlan stage = StageOf(*setting, 0, {five, four, {}}, DealLayers(8, 1, ministages)[0]);
        stage.in_flight = in_flight;
        const Plan plan = PlanOf(*setting, family, {{{stage}}});
        ASSERT_EQ(Validate(plan, setting->workload.model), absl::OkStatus());
        const auto schedule = MakeTrainingSchedule(*setting, plan);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        EXPECT_EQ(ValidateSchedule(plan, *schedule, true), absl::OkStatus())
            << ScheduleName(family) << ", " << ministages << " ministages, " << in_flight << " in flight";
      }
    }
  }
}

TEST(MakeScheduleTest, RandomPlansOfTheWholeLanguageGetValidSchedules) {
  RandomPlans random(41);
  for (int i = 0; i < 2000; ++i) {
    const auto setting = random.NextSetting(i % 2 == 0);
    const Plan plan = random.Next(*setting);
    if (!Validate(plan, setting->workload.model).ok()) continue;
    const auto schedule = MakeTrainingSchedule(*setting, plan);
    ASSERT_TRUE(schedule.ok()) << schedule.status() << "\n" << ToText(plan);
    const absl::Status valid = ValidateSchedule(plan, *schedule, true);
    ASSERT_TRUE(valid.ok()) << valid << "\n" << ToText(plan);
  }
}

// The same plans with their virtual stages in a V: their merged graphs come to an end, too.
TEST(MakeScheduleTest, RandomPlansInAVGetValidSchedules) {
  RandomPlans random(53);
  int several = 0;
  for (int i = 0; i < 500; ++i) {
    const auto setting = random.NextSetting(i % 2 == 0);
    Plan plan = random.Next(*setting);
    plan.schedule = ScheduleFamily::kZeroBubbleV;
    for (PipelinePlan& pipeline : plan.pipelines) {
      const auto stages = static_cast<int64_t>(pipeline.stages.size());
      const auto dealt = DealLayers(setting->workload.model.num_layers, stages, stages > 1 ? 2 : 1, TraitsOf(plan.schedule).map);
      for (size_t s = 0; s < dealt.size(); ++s) pipeline.stages[s].ministages = dealt[s];
      several += stages > 1 ? 1 : 0;
    }
    if (!Validate(plan, setting->workload.model).ok()) continue;
    const auto schedule = MakeTrainingSchedule(*setting, plan);
    ASSERT_TRUE(schedule.ok()) << schedule.status() << "\n" << ToText(plan);
    const absl::Status valid = ValidateSchedule(plan, *schedule, true);
    ASSERT_TRUE(valid.ok()) << valid << "\n" << ToText(plan);
    const auto evaluation = Evaluate(*setting, plan);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status() << "\n" << ToText(plan);
  }
  EXPECT_GT(several, 100);
}

// Two ministages each of a half of the stage's layers: what 1F1B's first stage keeps.
TEST(MakeScheduleTest, ZeroBubbleVKeepsAsManyMicrobatchesAsThereAreStages) {
  const auto setting = TwoNodes(8, 16);
  std::vector<StagePlan> stages;
  const auto dealt = DealLayers(8, 4, 2, VirtualStageMap::kV);
  for (int s = 0; s < 4; ++s) stages.push_back(StageOf(*setting, s, {std::vector<int64_t>(16, 1)}, dealt[s], 0));
  const auto schedule = MakeTrainingSchedule(*setting, PlanOf(*setting, ScheduleFamily::kZeroBubbleV, {{stages}}));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(schedule->pipelines[0].stage_of, ElementsAre(0, 1, 2, 3, 3, 2, 1, 0));
  for (const StageSchedule& stage : schedule->pipelines[0].stages) EXPECT_EQ(MostInFlight(stage, 0), 2 * 4);
}

// The schedule that goes with the plan is the whole of what its programs rest on: other costs, the same bytes.
TEST(MakeScheduleTest, ProgramsAreAFunctionOfThePlan) {
  RandomPlans random(43);
  int compared = 0;
  for (int i = 0; i < 200; ++i) {
    const auto setting = random.NextSetting();
    Plan plan = random.Next(*setting);
    MakeRunnable(&plan);
    if (!ValidateForEngine(plan, setting->workload.model).ok()) continue;
    plan.training = PlacedSchedule(*setting, plan).value();
    const auto stored = PlanFromJson(ToJson(plan));
    ASSERT_TRUE(stored.ok()) << stored.status();
    ASSERT_EQ(*stored->training, *plan.training);
    Cluster other = setting->cluster;
    for (size_t k = 0; k < other.kinds.size(); ++k) other.kinds[k].fp32_flops *= k % 2 == 0 ? 7 : 0.3;
    const auto elsewhere = MakeSetting(std::move(other), setting->workload);
    const auto before = LowerTraining(*setting, plan), after = LowerTraining(*elsewhere, *stored);
    ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status() << ToText(plan) << ToJson(plan);
    for (size_t r = 0; r < before->size(); ++r) ASSERT_EQ(ToText((*before)[r]), ToText((*after)[r]));
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

// Of each stage, and not of a validation pass, which sums nothing.
TEST(MakeScheduleTest, TheListingSaysWhereSumsBetweenPipelinesStand) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}, {"T4", "T4"}}, 400e9, 200e9), WorkOf(MediumModel(6, false), 16));
  Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B,
                     {{{StageOf(*setting, 0, {{4}, {4}}, {{0, 5}}, 3)}}, {{StageOf(*setting, 2, {{4}, {4}}, {{0, 5}}, 3)}}});
  plan.training = PlacedSchedule(*setting, plan).value();
  plan.validation = MakeValidationSchedule(*setting, plan, {{1}, {1}, {1}, {1}}).value();
  const std::string text = ScheduleListing(plan);
  const size_t validation = text.find("validation");
  ASSERT_NE(validation, std::string::npos);
  EXPECT_THAT(text.substr(0, validation), testing::ContainsRegex("pipeline 1 stage 0.*sums between pipelines at once"));
  EXPECT_THAT(text.substr(validation), testing::Not(testing::HasSubstr("sums")));
}

// What a job may bring is 1 MiB.
TEST(MakeScheduleTest, FiveHundredDevicesOfFourKindsAreWrittenByClass) {
  std::vector<std::vector<std::string>> nodes;
  for (int n = 0; n < 64; ++n) nodes.emplace_back(8, std::vector<std::string>{"T4", "A10G", "V100-16GB", "A100-40GB"}[n / 16]);
  const auto setting = MakeSetting(Nodes(nodes), WorkOf(MediumModel(16, false), int64_t{128} * 256));
  std::vector<StagePlan> stages;
  for (int s = 0; s < 4; ++s) {
    std::vector<std::vector<int64_t>> microbatches(128, std::vector<int64_t>(256, 1));
    stages.push_back(StageOf(*setting, 128 * s, microbatches, {{4 * s, 4 * s + 3}}, 1));
  }
  Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{stages}});
  plan.training = MakeTrainingSchedule(*setting, plan).value();
  const std::string with = ToJson(plan);
  plan.training.reset();
  EXPECT_LT(with.size(), ToJson(plan).size() + (int64_t{64} << 10));
}

// What stays beside activations is the ledger's; the activations are walked through the programs that run.
TEST(MakeScheduleTest, NoProgramNeedsMoreMemoryThanItsPlanWasSaidToNeed) {
  RandomPlans random(47);
  int plans = 0;
  while (plans < 300) {
    const auto open = random.NextSetting();
    PlanRequest request;
    request.runnable = true;
    const auto setting = Setting::Create(open->cluster, open->workload, request, nullptr);
    ASSERT_TRUE(setting.ok()) << setting.status();
    Plan plan = random.Next(**setting);
    MakeRunnable(&plan);
    if (!ValidateForEngine(plan, open->workload.model).ok()) continue;
    const auto priced = Price(**setting, plan);
    ASSERT_TRUE(priced.ok()) << priced.status();
    ++plans;
    const std::vector<ModelSlice> slices = SlicesOfRanks(open->workload.model, priced->plan).value();
    size_t r = 0;
    for (const StagePlan& stage : priced->plan.pipelines[0].stages) {
      for (const UnitPlan& unit : stage.units) {
        for (const RankPlan& rank : unit.ranks) {
          const RankPrediction& predicted = rank.predicted;
          const int64_t activations = predicted.memory.boundaries + predicted.memory.saved + predicted.memory.workspace;
          const int kind = (*setting)->KindOf((*setting)->FindDevice(rank.device));
          const int64_t walked = PeakActivations((*setting)->costs, kind, priced->programs[r], slices[r]).total();
          EXPECT_LE(walked, activations) << "rank " << r << " of\n" << ToText(priced->plan);
          ++r;
        }
      }
    }
  }
}

}  // namespace
}  // namespace motley::planner
