#include "planner/answers/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cluster/cluster_file.h"
#include "planner/pricing/evaluate.h"
#include "planner/strategies/catalog.h"

namespace motley::planner {
namespace {

// Two cards behind a network that a plan over both has to cross all the time.
constexpr char kSlowNetwork[] = R"toml(
name = "slow"
[[node]]
name = "a"
gpus = ["A6000"]
nic_gbit_per_second = 1
[[node]]
name = "b"
gpus = ["A6000"]
nic_gbit_per_second = 1
)toml";

std::unique_ptr<Setting> SettingOf(const char* toml, const char* strategy) {
  auto workload = LoadModel("gpt2-774m");
  workload->global_batch = 16;
  workload->seq_len = 512;
  PlanRequest request;
  request.strategy = strategy;
  return *Setting::Create(*ParseCluster(toml, "test"), *workload, request, nullptr);
}

Plan Planned(const Setting& setting) {
  auto plan = FindInCatalog(setting.request.strategy)->plan(setting);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return Evaluate(setting, *std::move(plan))->plan;
}

TEST(SensitivityTest, SlowNetworkBindsASplitOverTwoNodes) {
  const auto setting = SettingOf(kSlowNetwork, "even");
  int asked = 0;
  const Sensitivity found = FindSensitivity(*setting, Planned(*setting), nullptr, [&](const std::string&, int done, int total) {
    EXPECT_EQ(done, asked++);
    EXPECT_LT(done, total);
  });
  EXPECT_GT(asked, 5);
  EXPECT_EQ(found.helps_most, "a network half as fast again");
  EXPECT_EQ(found.relaxations[0].resource, "network between nodes");
  EXPECT_GT(found.relaxations[0].gain, 0.2);
  for (size_t i = 1; i < found.relaxations.size(); ++i) EXPECT_LE(found.relaxations[i].gain, found.relaxations[i - 1].gain);
  EXPECT_THAT(ToText(found), testing::HasSubstr("what would help most, found by planning again: a network half as fast again\n"));
  EXPECT_THAT(ToText(found), testing::Not(testing::HasSubstr("binds"))) << "the answer's first lines say what does";
}

TEST(SensitivityTest, NothingIsSaidOfWhatThePlanDoesNotUse) {
  const auto setting = SettingOf(R"toml(
name = "lab"
[defaults]
nic_gbit_per_second = 10
[[node]]
name = "a"
gpus = ["A6000"]
[[node]]
name = "old"
gpus = ["P40"]
)toml",
                                 "even");
  const Sensitivity of_both = FindSensitivity(*setting, Planned(*setting), nullptr);
  EXPECT_THAT(ToText(of_both), testing::HasSubstr("P40"));
  EXPECT_THAT(ToText(of_both), testing::Not(testing::HasSubstr("links inside"))) << "each card is alone in its node";
  PlanRequest request;
  request.strategy = "even";
  request.exclude = {"old"};
  const auto without = *Setting::Create(setting->cluster, setting->workload, request, nullptr);
  const Plan on_one = Planned(*without);
  EXPECT_THAT(ToText(FindSensitivity(*setting, on_one, nullptr)), testing::Not(testing::HasSubstr("P40")));
}

TEST(SensitivityTest, LinksToTheHostsAreAskedOfWhereSomethingWaitsThere) {
  const std::string hosts =
      std::string(kSlowNetwork).insert(std::string(kSlowNetwork).find("nic_gbit"), "host_memory_gib = 64\n");
  const auto setting = SettingOf(hosts.c_str(), "even");
  Plan plan = Planned(*setting);
  constexpr char kTwice[] = "links to the hosts' memory twice as fast";
  EXPECT_THAT(ToText(FindSensitivity(*setting, plan, nullptr)), testing::Not(testing::HasSubstr(kTwice)));
  plan.pipelines[0].stages[0].units[0].ranks[0].offload.activations = true;
  EXPECT_THAT(ToText(FindSensitivity(*setting, plan, nullptr)), testing::HasSubstr(kTwice));
}

TEST(SensitivityTest, WhatChangesNothingIsSaidSo) {
  Sensitivity found;
  found.helps_most = "nothing alone";
  found.relaxations = {{"one more A6000", "compute of A6000", 0.012}, {"a network half as fast again", "network", 0.0002}};
  EXPECT_EQ(ToText(found),
            "what would help most, found by planning again: nothing alone\n  one more A6000: 1.2 % faster\n"
            "  a network half as fast again: no difference\n");
}

TEST(SensitivityTest, WrongProfilesCostNothingWhereTheAnswerCannotChange) {
  // Even splits do not look at speeds; equal cards would be split evenly in any case.
  const auto setting = SettingOf(kSlowNetwork, "even");
  const Sensitivity found = FindSensitivity(*setting, Planned(*setting), nullptr);
  EXPECT_GT(found.regret_trials, 0);
  EXPECT_LT(found.regret_worst, 1e-9);
}

TEST(SensitivityTest, IsDeterministic) {
  const auto setting = SettingOf(kSlowNetwork, "cephalo");
  const Plan plan = Planned(*setting);
  EXPECT_EQ(ToText(FindSensitivity(*setting, plan, nullptr)), ToText(FindSensitivity(*setting, plan, nullptr)));
}

}  // namespace
}  // namespace motley::planner
