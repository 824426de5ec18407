#include "planner/answers/node_worth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/answers/given_plan.h"
#include "planner/answers/plan_answer.h"
#include "planner/cluster/cluster_file.h"
#include "planner/costs/workload.h"

namespace motley::planner {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two alike nodes, a faster one, and an old one.
constexpr char kLab[] = R"toml(
name = "lab"
[[node]]
name = "a"
gpus = ["RTX-3090"]
nic_gbit_per_second = 10
[[node]]
name = "b"
gpus = ["RTX-3090"]
nic_gbit_per_second = 10
[[node]]
name = "ws"
gpus = ["A6000", "A6000"]
nic_gbit_per_second = 10
[[node]]
name = "old"
gpus = ["P40"]
nic_gbit_per_second = 10
)toml";

std::unique_ptr<Setting> SettingOf(const char* toml, PlanRequest request, const char* model = "gpt2-774m") {
  auto workload = LoadModel(model);
  workload->global_batch = 32;
  workload->seq_len = 512;
  workload->dtype = DType::kFloat16;
  request.budget_nodes = 100'000;
  auto setting = Setting::Create(*ParseCluster(toml, "test"), *workload, std::move(request), nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

Plan Answered(const Setting& setting) {
  auto answer = AnswerPlan(setting);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer->evaluation.plan;
}

double SecondsWithout(std::vector<std::string> nodes) {
  PlanRequest request;
  request.exclude = std::move(nodes);
  return Answered(*SettingOf(kLab, request)).predicted.step_seconds;
}

TEST(NodeWorthTest, EachIsTheAnswerOfASeparatePlan) {
  const auto setting = SettingOf(kLab, {});
  int asked = 0;
  const Worth worth = FindWorth(*setting, Answered(*setting), nullptr, [&](const std::string&, int done, int total) {
    EXPECT_EQ(done, asked++);
    EXPECT_LT(done, total);
  });
  ASSERT_EQ(worth.without.size(), 3u) << "a and b are alike";
  EXPECT_EQ(worth.without[0].alike, (std::vector{NodeName("a"), NodeName("b")}));
  const std::vector<std::string> names = {"b", "ws", "old"};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_NEAR(worth.without[i].step_seconds, SecondsWithout({names[i]}), 1e-9) << names[i];
  }
  ASSERT_TRUE(worth.machine);
  EXPECT_EQ(worth.machine->node, NodeName("ws"));
  EXPECT_NEAR(worth.machine->step_seconds, SecondsWithout({"a", "b", "old"}), 1e-9);
}

TEST(NodeWorthTest, TheBestMachineIsTheFastestOfAll) {
  const auto setting = SettingOf(kLab, {});
  const Worth worth = FindWorth(*setting, Answered(*setting), nullptr);
  ASSERT_TRUE(worth.machine);
  for (const char* node : {"a", "ws", "old"}) {
    std::vector<std::string> others = {"a", "b", "ws", "old"};
    std::erase(others, node);
    EXPECT_LE(worth.machine->step_seconds, SecondsWithout(others) * (1 + 1e-9)) << node;
  }
}

TEST(NodeWorthTest, SaysItForPeople) {
  const auto setting = SettingOf(kLab, {});
  const Plan best = Answered(*setting);
  const std::string text = ToText(FindWorth(*setting, best, nullptr), best);
  EXPECT_THAT(text, HasSubstr("without any one of a, b: "));
  EXPECT_THAT(text, HasSubstr("% fewer"));
  EXPECT_THAT(text, HasSubstr("best single machine: ws, "));
}

TEST(NodeWorthTest, WhatMakesNoDifferenceIsSaidSo) {
  Plan best;
  best.predicted.step_seconds = 1;
  best.predicted.tokens_per_second = 139700;
  Worth worth;
  worth.without = {{{NodeName("old")}, absl::OkStatus(), 1.0004}, {{NodeName("new")}, absl::OkStatus(), 1.25}};
  const std::string text = ToText(worth, best);
  EXPECT_THAT(text, HasSubstr("without old: 139.6k tokens/s, no difference\n"));
  EXPECT_THAT(text, HasSubstr("without new: 111.8k tokens/s, 20.0 % fewer\n"));
}

TEST(NodeWorthTest, WhereANodeIsNeededTheReasonStandsThere) {
  const auto setting = SettingOf(R"toml(
name = "two"
[[node]]
name = "a"
gpus = ["A6000"]
nic_gbit_per_second = 10
[[node]]
name = "small"
gpus = ["T4"]
nic_gbit_per_second = 10
)toml",
                                 {}, "llama-3b");
  const Plan best = Answered(*setting);
  const Worth worth = FindWorth(*setting, best, nullptr);
  ASSERT_EQ(worth.without.size(), 2u);
  EXPECT_EQ(worth.without[0].step_seconds, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(worth.without[0].status)) << worth.without[0].status;
  EXPECT_THAT(ToText(worth, best), HasSubstr("without a: no plan: "));
}

TEST(NodeWorthTest, OneMachineAsksNothing) {
  const auto setting = SettingOf("name = \"one\"\n[[node]]\nname = \"a\"\ngpus = [\"A6000\"]\n", {});
  const Plan best = Answered(*setting);
  const Worth worth = FindWorth(*setting, best, nullptr);
  EXPECT_TRUE(worth.without.empty());
  EXPECT_FALSE(worth.machine);
  EXPECT_TRUE(worth.no_machine.ok());
  if (!worth.runnable) EXPECT_EQ(ToText(worth, best), "");
}

TEST(NodeWorthTest, APlanThatRunsHereNeedsNoOtherThatDoes) {
  const auto setting = SettingOf(kLab, PlanRequest());
  const Plan best = Answered(*setting);
  ASSERT_TRUE(FindRunsHere(*setting, best).status.ok());
  const Worth worth = FindWorth(*setting, best, nullptr);
  EXPECT_FALSE(worth.runnable);
  EXPECT_THAT(ToText(worth, best), Not(HasSubstr("runs here")));
}

TEST(NodeWorthTest, TheBestThatRunsHereIsThatOfRunnable) {
  PlanRequest request;
  const auto setting = SettingOf(kLab, request);
  const std::string whole =
      absl::StrCat("{\"stages\":[{\"ministages\":[[0,", setting->workload.model.num_layers - 1,
                   "]],\"units\":[{\"ranks\":[{\"device\":\"ws/gpuN\",\"shard_ratio\":1,\"recompute\":\"full\"}],"
                   "\"microbatches\":[4,4,4,4]}]}]}");
  const auto two = PlanFromJson(
      absl::StrCat("{\"schedule\":\"1f1b\",\"global_batch\":32,\"seq_len\":512,\"dtype\":\"float16\",\"pipelines\":[",
                   absl::StrReplaceAll(whole, {{"gpuN", "gpu0"}}), ",", absl::StrReplaceAll(whole, {{"gpuN", "gpu1"}}), "]}"));
  ASSERT_TRUE(two.ok()) << two.status();
  const auto priced = PriceGivenPlan(*setting, *two);
  ASSERT_TRUE(priced.ok()) << priced.status();
  Plan best = priced->evaluation.plan;
  best.pipelines[0].stages[0].units[0].ranks[0].offload.parameters = true;
  ASSERT_FALSE(FindRunsHere(*setting, best).status.ok());
  const Worth worth = FindWorth(*setting, best, nullptr);
  ASSERT_TRUE(worth.runnable);
  EXPECT_THAT(ToText(worth, best), HasSubstr("runs here"));
  request.runnable = true;
  EXPECT_NEAR(worth.runnable->predicted.step_seconds, Answered(*SettingOf(kLab, request)).predicted.step_seconds, 1e-9);
}

// Layered plans keep every sample: twice as many leave no room to keep activations, so two smaller steps are faster.
TEST(NodeWorthTest, HalfTheBatchIsNamedWhereItMakesMoreTokensASecond) {
  const std::string toml = "name = \"two\"\n[[node]]\nname = \"n1\"\ngpus = [{card = \"RTX-3090\", count = 2}]\n";
  const auto setting_of = [&toml](int64_t batch) {
    Workload workload = *LoadModel("gpt2-774m");
    workload.global_batch = batch;
    workload.seq_len = 1024;
    workload.dtype = DType::kFloat16;
    PlanRequest request;
    request.strategy = "cephalo";
    return *Setting::Create(*ParseCluster(toml, "test"), workload, request, nullptr);
  };
  const auto setting = setting_of(32), half = setting_of(16);
  const Plan best = Answered(*setting);
  const Worth worth = FindWorth(*setting, best, nullptr);
  ASSERT_TRUE(worth.half.has_value());
  EXPECT_EQ(worth.half->global_batch, 16);
  EXPECT_EQ(worth.half->step_seconds, Answered(*half).predicted.step_seconds);
  EXPECT_LT(2 * worth.half->step_seconds, best.predicted.step_seconds);
  EXPECT_THAT(ToText(worth, best), testing::ContainsRegex("  half the batch, 16: .* a step, .* tokens/s, .* % more\n"));
  EXPECT_FALSE(FindWorth(*half, Answered(*half), nullptr).half.has_value()) << "nothing is gained by 8";
}

}  // namespace
}  // namespace motley::planner
