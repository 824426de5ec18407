#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner/costs/memory_model.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

const StagePlan& StageOf(const Plan& plan) { return plan.pipelines.at(0).stages.at(0); }
int64_t BatchOf(const Plan& plan, const std::string& device) {
  for (const UnitPlan& unit : StageOf(plan).units) {
    if (unit.ranks[0].device.value() == device) return unit.batch();
  }
  return 0;
}
std::string TwoKinds() { return ClusterText({{"n1", Cards("V100-16GB", 2)}, {"n2", Cards("T4", 2)}}); }

TEST(PoplarStrategyTest, PlansAreValidAndFit) {
  for (const PlanRequest& request : {PlanRequest(), Published()}) {
    for (const char* cluster : {"poplar-a", "poplar-b", "poplar-c", "cephalo-b"}) {
      const auto setting = PresetSetting(cluster, "llama-0.5b", 128, 1024, request);
      const absl::StatusOr<Plan> plan = PlanPoplar(*setting);
      ASSERT_TRUE(plan.ok()) << cluster << ": " << plan.status();
      EXPECT_TRUE(Validate(*plan, setting->workload.model).ok());
      const absl::StatusOr<Evaluation> evaluation = Evaluate(*setting, *plan);
      ASSERT_TRUE(evaluation.ok()) << evaluation.status();
      EXPECT_THAT(evaluation->does_not_fit, ::testing::IsEmpty());
      EXPECT_EQ(plan->pipelines.size(), 1u);
      EXPECT_EQ(plan->schedule, ScheduleFamily::k1F1B);
    }
  }
}

TEST(PoplarStrategyTest, FasterCardsGetMoreAndShardsAreEvenAsPublished) {
  const auto setting = SettingOf(TwoKinds(), "llama-0.5b", 60, 512, Published());
  const Plan plan = PlanPoplar(*setting).value();
  EXPECT_GT(BatchOf(plan, "n1/gpu0"), BatchOf(plan, "n2/gpu0"));
  EXPECT_LE(std::abs(BatchOf(plan, "n1/gpu0") - BatchOf(plan, "n1/gpu1")), 1);
  for (const UnitPlan& unit : StageOf(plan).units) {
    EXPECT_DOUBLE_EQ(unit.ranks[0].shard_ratio, 0.25);
    EXPECT_EQ(unit.ranks[0].recompute, OpSet::None());
  }
}

// With the state that the engine keeps.
TEST(PoplarStrategyTest, TunedIsNeverSlower) {
  for (const char* cluster : {"poplar-b", "poplar-c", "zorse-a", "cephalo-a"}) {
    const auto published = PresetSetting(cluster, "llama-1.1b", 64, 512, Published());
    const auto tuned = PresetSetting(cluster, "llama-1.1b", 64, 512);
    const absl::StatusOr<Plan> slow = PlanPoplar(*published), fast = PlanPoplar(*tuned);
    ASSERT_TRUE(fast.ok()) << fast.status();
    if (!slow.ok()) continue;
    const auto priced = Price(*tuned, *slow);
    ASSERT_TRUE(priced.ok()) << priced.status();
    if (!priced->does_not_fit.empty()) continue;
    EXPECT_LE(Price(*tuned, *fast)->plan.predicted.step_seconds, priced->plan.predicted.step_seconds) << cluster;
  }
}

// The stage rises with the model: each is the first at which a sample fits on every card.
TEST(PoplarStrategyTest, RaisesTheStageOnlyAsFarAsMemoryAsks) {
  const std::string cluster = ClusterText({{"n1", Cards("V100-16GB", 4)}, {"n2", Cards("T4", 4)}});
  int last = 0;
  for (const char* model : {"llama-0.5b", "llama-1.1b", "llama-3b"}) {
    const auto setting = SettingOf(cluster, model, 16, 512, Published());
    const absl::StatusOr<Plan> plan = PlanPoplar(*setting);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const int stage = StageOf(*plan).zero_stage;
    EXPECT_GE(stage, last) << model;
    last = stage;
    if (stage == 0) continue;
    PlanRequest below = Published();
    below.zero_stage = stage - 1;
    const absl::StatusOr<Plan> refused = PlanPoplar(*SettingOf(cluster, model, 16, 512, below));
    // With recomputation the smaller stage may do: never without.
    if (!refused.ok()) continue;
    EXPECT_EQ(StageOf(*refused).units[0].ranks[0].recompute, OpSet::All());
  }
  EXPECT_GT(last, 0);
}

TEST(PoplarStrategyTest, TheRequestPinsTheStage) {
  for (int stage = 0; stage <= 3; ++stage) {
    PlanRequest request;
    request.zero_stage = stage;
    const Plan plan = PlanPoplar(*SettingOf(TwoKinds(), "llama-0.5b", 32, 512, request)).value();
    EXPECT_EQ(StageOf(plan).zero_stage, std::max(stage, 1)) << "tuned there are no replicas";
  }
}

TEST(PoplarStrategyTest, NothingFitsNamesDeviceAndBytes) {
  for (const PlanRequest& request : {PlanRequest(), Published()}) {
    const absl::Status status = PlanPoplar(*SettingOf(TwoKinds(), "llama-65b", 16, 512, request)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("/gpu"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("GiB"));
  }
}

TEST(PoplarStrategyTest, RefusesPinsToOtherStages) {
  PlanRequest request;
  request.pins["stage1"] = "n2";
  const absl::Status status = PlanPoplar(*SettingOf(TwoKinds(), "llama-0.5b", 16, 512, request)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("n2/gpu0"));
}

TEST(PoplarStrategyTest, TheSameTwice) {
  const auto setting = PresetSetting("poplar-c", "llama-1.1b", 100, 1024);
  EXPECT_EQ(ToJson(PlanPoplar(*setting).value()), ToJson(PlanPoplar(*setting).value()));
}

}  // namespace
}  // namespace motley::planner
