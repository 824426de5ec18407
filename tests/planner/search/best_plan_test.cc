#include "planner/search/best_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/pricing/evaluate.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// All samples of `setting` on one card, in microbatches of `size`.
Plan OneCard(const Setting& setting, int device, int64_t size) {
  Plan plan;
  plan.strategy = "test";
  plan.global_batch = setting.workload.global_batch;
  plan.seq_len = setting.workload.seq_len;
  plan.dtype = setting.workload.dtype;
  plan.schedule = ScheduleFamily::k1F1B;
  RankPlan rank;
  rank.device = setting.cluster.devices[device].id;
  rank.shard_ratio = 1;
  StagePlan stage;
  stage.zero_stage = 0;
  stage.ministages = {{0, setting.workload.model.num_layers - 1}};
  stage.units = {{{rank}, std::vector<int64_t>(static_cast<size_t>(plan.global_batch / size), size)}};
  plan.pipelines = {{{stage}}};
  return plan;
}

std::unique_ptr<Setting> TwoCards(const std::string& model) {
  return SettingOf(ClusterText({{"n1", Cards("T4", 1)}, {"n2", Cards("A100", 1)}}), model, 16, 512);
}

TEST(BestPlanTest, TheSimulatorDecidesAndFillsInPredictions) {
  const auto setting = TwoCards("gpt2-124m");
  const Plan best = BestPlan(*setting, std::vector<Plan>{OneCard(*setting, 0, 4), OneCard(*setting, 1, 4)}).value();
  EXPECT_EQ(best.pipelines[0].stages[0].units[0].ranks[0].device.value(), "n2/gpu0");
  EXPECT_GT(best.predicted.step_seconds, 0);
}

TEST(BestPlanTest, PlansThatDoNotFitAreOutOfTheRace) {
  const auto setting = TwoCards("llama-1.1b");  // 17.6 GB of state: not on a T4
  const Plan best = BestPlan(*setting, std::vector<Plan>{OneCard(*setting, 0, 1), OneCard(*setting, 1, 1)}).value();
  EXPECT_EQ(best.pipelines[0].stages[0].units[0].ranks[0].device.value(), "n2/gpu0");
  const absl::Status status = BestPlan(*setting, std::vector<Plan>{OneCard(*setting, 0, 1)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("n1/gpu0"));
}

TEST(BestPlanTest, NothingToChooseFromOrABrokenPlan) {
  const auto setting = TwoCards("gpt2-124m");
  EXPECT_EQ(BestPlan(*setting, std::vector<Plan>()).status().code(), absl::StatusCode::kResourceExhausted);
  Plan broken = OneCard(*setting, 0, 4);
  broken.pipelines[0].stages[0].units[0].ranks[0].device = DeviceId("n9/gpu0");
  EXPECT_EQ(BestPlan(*setting, std::vector<Plan>{broken}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BestPlanTest, FasterOfTwoAnswers) {
  const auto setting = TwoCards("gpt2-124m");
  Plan slow, fast;
  slow.predicted.step_seconds = 2;
  slow.strategy = "slow";
  fast.predicted.step_seconds = 1;
  fast.strategy = "fast";
  const absl::Status none = absl::ResourceExhaustedError("none");
  EXPECT_EQ(FasterPlan(*setting, slow, fast)->strategy, "fast");
  EXPECT_EQ(FasterPlan(*setting, fast, slow)->strategy, "fast");
  EXPECT_EQ(FasterPlan(*setting, none, slow)->strategy, "slow");
  EXPECT_EQ(FasterPlan(*setting, slow, none)->strategy, "slow");
  EXPECT_EQ(FasterPlan(*setting, none, absl::InternalError("other")).status(), none);
}

}  // namespace
}  // namespace motley::planner
