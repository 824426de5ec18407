#include "planner/answers/fits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

TEST(FitsTest, TheFrugalPlanIsAPlanAndItsBytesAreTheLedgers) {
  const auto setting = MakeSetting(LargeWorkload(2));
  const auto plan = FrugalPlan(*setting, false);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(Validate(*plan, setting->workload.model), absl::OkStatus());
  const auto evaluation = Evaluate(*setting, *plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_TRUE(evaluation->does_not_fit.empty());
  for (size_t u = 0; u < plan->pipelines[0].stages[0].units.size(); ++u) {
    EXPECT_EQ(evaluation->plan.pipelines[0].stages[0].units[u].ranks[0].predicted.memory,
              plan->pipelines[0].stages[0].units[u].ranks[0].predicted.memory)
        << u;
  }
}

TEST(FitsTest, FindsTheMostThatFits) {
  const auto setting = MakeSetting(LargeWorkload(2));
  const auto report = FindFit(*setting, nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->fits);
  EXPECT_TRUE(report->missing.empty());
  ASSERT_EQ(report->kinds.size(), 3u);
  EXPECT_EQ(report->kinds[0].kind, "A6000");
  EXPECT_EQ(report->kinds[2].ranks, 2);
  for (const KindFit& kind : report->kinds) {
    EXPECT_LE(kind.memory.total(), kind.usable_bytes);
    EXPECT_GT(kind.memory.optimizer, 0);
    EXPECT_LE(kind.largest_microbatch_keep, kind.largest_microbatch_recompute);
    EXPECT_GE(kind.largest_microbatch_recompute, 1);
  }
  EXPECT_TRUE(report->batch.at_least) << "samples go one by one: no batch is too large";
  EXPECT_GE(report->sequence.value, 512);
}

TEST(FitsTest, AStrategysOwnLargestBatchIsTheLastThatItPlans) {
  PlanRequest request;
  request.strategy = "cephalo";
  const auto report = FindFit(*MakeSetting(LargeWorkload(2), request), nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(report->fits);
  ASSERT_FALSE(report->batch.at_least);
  const int64_t largest = report->batch.value;
  EXPECT_TRUE(FindFit(*MakeSetting(LargeWorkload(2, largest), request), nullptr)->fits);
  EXPECT_FALSE(FindFit(*MakeSetting(LargeWorkload(2, largest + largest / 8 + 2), request), nullptr)->fits);
}

TEST(FitsTest, WhatDoesNotFitSaysWhoLacksHowMuch) {
  const auto report = FindFit(*MakeSetting(LargeWorkload(40)), nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->fits);
  ASSERT_FALSE(report->missing.empty());
  EXPECT_THAT(report->missing[0], HasSubstr("lacks"));
  EXPECT_EQ(report->batch.value, 0);
  EXPECT_EQ(report->sequence.value, 0);
  ASSERT_FALSE(report->kinds.empty()) << "what it would need is shown";
  EXPECT_GT(report->kinds[0].memory.total(), report->kinds[0].usable_bytes);
}

TEST(FitsTest, HostMemoryIsUsedWhereItIsKnown) {
  std::string toml = kMixedToml;
  const Workload workload = LargeWorkload(9);
  EXPECT_FALSE(FindFit(*MakeSetting(workload), nullptr)->fits);
  toml.replace(toml.find("nic_gbit"), 0, "host_memory_gib = 512\n");
  const auto report = FindFit(*MakeSetting(workload, {}, toml), nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->fits);
  EXPECT_GT(report->kinds[0].memory.host, 0);
}

TEST(FitsTest, NoCardHoldsOneSample) {
  Workload workload = LargeWorkload(2);
  workload.model.max_positions = workload.seq_len = 1 << 22;
  const auto plan = FrugalPlan(*MakeSetting(workload), false);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("no device holds context, buffers and one sample: n1/gpu0 lacks"));
}

TEST(FitsTest, UnknownStrategy) {
  PlanRequest request;
  request.strategy = "none";
  EXPECT_EQ(FindFit(*MakeSetting(SmallWorkload(), request), nullptr).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace motley::planner
