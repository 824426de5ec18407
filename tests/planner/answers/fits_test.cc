#include "planner/answers/fits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/answers/plan_answer.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/least_lack.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/frugal_plan.h"
#include "planner/util/lack_of_memory.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

TEST(FitsTest, TheFrugalPlanIsAPlanAndItsBytesAreTheLedgers) {
  const auto setting = MakeSetting(LargeWorkload(2));
  const Plan plan = FrugalPlan(*setting, {});
  EXPECT_EQ(Validate(plan, setting->workload.model), absl::OkStatus());
  const auto evaluation = Evaluate(*setting, plan);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_TRUE(evaluation->does_not_fit.empty());
  for (size_t u = 0; u < plan.pipelines[0].stages[0].units.size(); ++u) {
    EXPECT_EQ(evaluation->plan.pipelines[0].stages[0].units[u].ranks[0].predicted.memory,
              plan.pipelines[0].stages[0].units[u].ranks[0].predicted.memory)
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
  EXPECT_TRUE(report->batch.at_least && report->batch.any) << "samples go one by one: no batch is too large";
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
  const auto report = FindFit(*MakeSetting(LargeWorkload(40)), nullptr, false);
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
  EXPECT_FALSE(FindFit(*MakeSetting(workload), nullptr, false)->fits);
  toml.replace(toml.find("nic_gbit"), 0, "host_memory_gib = 512\n");
  const auto report = FindFit(*MakeSetting(workload, {}, toml), nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->fits);
  EXPECT_GT(report->kinds[0].memory.host, 0);
  EXPECT_GE(report->host_bytes, report->kinds[0].memory.host) << "of all hosts";
  EXPECT_GT(report->fewest_host_bytes, 0);
  EXPECT_EQ(report->runs_here, absl::OkStatus());
}

TEST(FitsTest, NoCardHoldsOneSample) {
  Workload workload = LargeWorkload(2);
  workload.model.max_positions = workload.seq_len = 1 << 22;
  const auto report = FindFit(*MakeSetting(workload), nullptr, false);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->fits);
  EXPECT_GT(report->lacking_bytes, int64_t{10} << 30);
}

// A card whose host takes the optimizer, where it may.
TEST(FitsTest, WhatRunsHereIsWithinWhatMayBeOffloaded) {
  const std::string toml = "name = \"one\"\n[[node]]\nname = \"ada\"\ngpus = [\"4090\"]\nhost_memory_gib = 64\n";
  Workload workload = *LoadModel("llama3.2-1b");
  workload.global_batch = 16;
  workload.seq_len = 2048;
  workload.dtype = DType::kBFloat16;
  PlanRequest request;
  request.runnable = true;
  for (const PlanRequest& asked : {PlanRequest(), request}) {
    const auto offloads = FindFit(*MakeSetting(workload, asked, toml), nullptr);
    ASSERT_TRUE(offloads.ok()) << offloads.status();
    EXPECT_TRUE(offloads->fits);
    EXPECT_EQ(offloads->runs_here, absl::OkStatus());
  }
  request.offload = OffloadKinds::None();
  const auto setting = MakeSetting(workload, request, toml);
  const auto report = FindFit(*setting, nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->fits) << "all on the card";
  EXPECT_GT(report->lacking_bytes, 0);
  const absl::Status plan = PlanAndEvaluate(*setting, *FindInCatalog("auto")).status();
  EXPECT_EQ(LackingBytes(plan), report->lacking_bytes) << plan;
  EXPECT_THAT(report->missing[0], HasSubstr(std::string(plan.message())));
}

TEST(FitsTest, OfWhatDoesNotFitAllWhoHoldStateLackTheSame) {
  const auto setting = MakeSetting(LargeWorkload(40));
  const Plan plan = FrugalPlan(*setting, {});
  int64_t least = INT64_MAX, most = 0, sum = 0;
  for (const UnitPlan& unit : plan.pipelines[0].stages[0].units) {
    const RankPlan& rank = unit.ranks[0];
    const int64_t lacks = rank.predicted.peak_bytes - setting->UsableBytes(setting->FindDevice(rank.device));
    least = std::min(least, lacks);
    most = std::max(most, lacks);
    sum += lacks;
  }
  EXPECT_LT(most - least, 1 << 20) << "one that lacked less would take more";
  EXPECT_GE(most, LeastLack(*setting));
  const absl::Status fits = FindFrugal(*setting).fits;
  EXPECT_EQ(LackingBytes(fits), most) << fits;
}

TEST(FitsTest, AnotherOptimizersStateIsCountedAndDoesNotRunHere) {
  Workload workload = LargeWorkload(8);
  workload.dtype = DType::kFloat16;
  EXPECT_FALSE(FindFit(*MakeSetting(workload), nullptr, false)->fits);
  workload.state_bytes_per_parameter = 6;
  const auto report = FindFit(*MakeSetting(workload), nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->fits);
  EXPECT_EQ(report->runs_here.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(report->runs_here.message()), HasSubstr("jobs keep AdamW in float32; this counts 6 bytes"));
}

// A small device that still computes has less room for state than one that no longer does.
TEST(FitsTest, WhatFitsFrugallyWithASequenceFitsWithEveryShorterOne) {
  const std::string toml =
      "name = \"uneven\"\n[[node]]\nname = \"n\"\ngpus = [{card = \"A6000\", count = 1}, {card = \"T4\", count = 3}]\n";
  int borders = 0;
  for (double reserve = 0.1; reserve < 0.6; reserve += 0.01) {
    bool before = true;
    for (int64_t seq_len = 512; seq_len <= 32768; seq_len += 512) {
      Workload workload = LargeWorkload(3);
      workload.model.max_positions = 32768;
      workload.seq_len = seq_len;
      workload.dtype = DType::kFloat16;
      PlanRequest request;
      request.runnable = true;
      request.memory_reserve = reserve;
      const bool fits = FindFrugal(*MakeSetting(workload, request, toml)).fits.ok();
      EXPECT_TRUE(before || !fits) << "with " << seq_len << " and not with 512 less, reserve " << reserve;
      borders += before && !fits && seq_len > 512;
      before = fits;
    }
  }
  EXPECT_GT(borders, 5);
}

// As where no time is left for any strategy.
TEST(FitsTest, WhereAutoFindsNoOtherPlanItTakesTheFrugalOne) {
  PlanRequest request;
  request.deadline = absl::Nanoseconds(1);
  const auto evaluation = PlanAndEvaluate(*MakeSetting(LargeWorkload(2), request), *FindInCatalog("auto"));
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_THAT(evaluation->plan.predicted.notes, testing::Contains(HasSubstr("found from frugal")));
}

TEST(FitsTest, UnknownStrategy) {
  PlanRequest request;
  request.strategy = "none";
  EXPECT_EQ(FindFit(*MakeSetting(SmallWorkload(), request), nullptr).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace motley::planner
