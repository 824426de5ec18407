#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/plan/op_set.h"
#include "planner/pricing/evaluate.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(BatonStrategyTest, PlansAreValidFitAndUseEveryDeviceOnceOrSayWhyNot) {
  for (const PlanRequest& request : {PlanRequest(), Published()}) {
    for (const char* cluster : {"baton", "cephalo-a", "zorse-a", "poplar-c"}) {
      const auto setting = PresetSetting(cluster, "gpt3-1b", 96, 1024, request);
      const absl::StatusOr<Plan> plan = PlanBaton(*setting);
      ASSERT_TRUE(plan.ok()) << cluster << ": " << plan.status();
      ExpectFitsAndNamesEveryDevice(*setting, *plan);
    }
  }
}

TEST(BatonStrategyTest, TunedIsNeverSlower) {
  for (const char* cluster : {"baton", "zorse-a", "poplar-b"}) {
    const Plan published = PlanBaton(*PresetSetting(cluster, "gpt3-1b", 64, 1024, Published())).value();
    const Plan tuned = PlanBaton(*PresetSetting(cluster, "gpt3-1b", 64, 1024)).value();
    EXPECT_LE(tuned.predicted.step_seconds, published.predicted.step_seconds) << cluster;
  }
}

// As published there are no replicas: every stage is one unit.
TEST(BatonStrategyTest, PublishedHasNoReplicas) {
  const Plan plan = PlanBaton(*PresetSetting("cephalo-b", "llama-7b", 64, 512, Published())).value();
  for (const StagePlan& stage : plan.pipelines.at(0).stages) {
    EXPECT_THAT(stage.units, SizeIs(1));
    EXPECT_EQ(stage.zero_stage, 0);
  }
}

// Between what fits with nothing recomputed and what does not fit at all lie models for which some operators, not all, run again.
TEST(BatonStrategyTest, RecomputesSomeOperatorsWhereMemoryIsShort) {
  bool some = false;
  for (const int64_t seq_len : {512, 1024, 2048}) {
    const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 2)}}), "gpt3-1b", 32, seq_len, Published());
    const absl::StatusOr<Plan> plan = PlanBaton(*setting);
    if (!plan.ok()) continue;
    for (const StagePlan& stage : plan->pipelines[0].stages) {
      for (const RankPlan& rank : stage.units[0].ranks) {
        const OpSet ops = rank.recompute;
        some = some || (!ops.empty() && !ops.all());
      }
    }
  }
  EXPECT_TRUE(some);
}

TEST(BatonStrategyTest, RanksOfAUnitDecideTogetherAboutReductions) {
  for (const char* model : {"gpt3-1b", "gpt-2.7b"}) {
    const absl::StatusOr<Plan> plan =
        PlanBaton(*SettingOf(ClusterText({{"n1", Cards("T4", 4) + ", " + Cards("V100-16GB", 4)}}), model, 32, 2048));
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const StagePlan& stage : plan->pipelines[0].stages) {
      for (const UnitPlan& unit : stage.units) {
        int again = 0;
        for (const RankPlan& rank : unit.ranks) again += rank.recompute.Has(Op::kAttnOut) ? 1 : 0;
        EXPECT_TRUE(again == 0 || again == static_cast<int>(unit.ranks.size()));
      }
    }
  }
}

TEST(BatonStrategyTest, NothingFitsNamesDeviceAndBytes) {
  const absl::Status status = PlanBaton(*SettingOf(ClusterText({{"n1", Cards("T4", 2)}}), "llama-65b", 16, 512)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("n1/gpu"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("GiB"));
}

TEST(BatonStrategyTest, RefusesZeroStagesAndPinsThatItCannotHold) {
  const std::string cluster = ClusterText({{"n1", Cards("A10G", 1)}, {"n2", Cards("A10G", 1)}});
  PlanRequest request;
  request.zero_stage = 2;
  EXPECT_EQ(PlanBaton(*SettingOf(cluster, "llama-0.5b", 16, 512, request)).status().code(), absl::StatusCode::kInvalidArgument);
  request = {};
  request.pins = {{"stage0", "n2"}, {"stage1", "n1"}};
  EXPECT_EQ(PlanBaton(*SettingOf(cluster, "llama-0.5b", 16, 512, request)).status().code(), absl::StatusCode::kInvalidArgument);
  request.pins = {{"stage1", "n2"}};
  const Plan plan = PlanBaton(*SettingOf(cluster, "llama-0.5b", 16, 512, request)).value();
  EXPECT_EQ(plan.pipelines[0].stages.at(1).units[0].ranks[0].device.value(), "n2/gpu0");
}

TEST(BatonStrategyTest, TheSameTwice) {
  const auto setting = PresetSetting("cephalo-a", "gpt3-1b", 48, 1024);
  EXPECT_EQ(ToJson(PlanBaton(*setting).value()), ToJson(PlanBaton(*setting).value()));
}

}  // namespace
}  // namespace motley::planner
