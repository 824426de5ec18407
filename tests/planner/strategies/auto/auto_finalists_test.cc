#include "planner/strategies/auto/auto_finalists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/setting/blank_plan.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

constexpr char kTwoCardsToml[] = R"(name = "pair"
[[node]]
name = "n1"
gpus = [{card = "L4", count = 2}]
)";

// One long sample a step: two units could not share it.
std::unique_ptr<Setting> Pair(PlanRequest request = {}) {
  Workload workload = SmallWorkload(1);
  workload.model.max_positions = workload.seq_len = 2048;
  return MakeSetting(std::move(workload), std::move(request), kTwoCardsToml);
}

// Both cards in one tensor-parallel unit, which is the only stage.
Plan OneUnit(const Setting& setting) {
  Plan plan = BlankPlan(setting, "test", ScheduleFamily::k1F1B);
  UnitPlan unit;
  for (const ClusterDevice& device : setting.cluster.devices) {
    RankPlan rank;
    rank.device = device.id;
    rank.shard_ratio = rank.tp_share = 0.5;
    unit.ranks.push_back(rank);
  }
  unit.microbatches = {1};
  StagePlan stage;
  stage.zero_stage = 1;
  stage.ministages = {{0, setting.workload.model.num_layers - 1}};
  stage.units = {unit};
  plan.pipelines = {{{stage}}};
  return plan;
}

// Its sums hide behind the gradients of the weights, which the classes of a search do not show.
TEST(AutoFinalistsTest, AUnitAloneGetsZeroBubble) {
  const auto setting = Pair();
  const absl::StatusOr<Evaluation> begun = Evaluate(*setting, OneUnit(*setting));
  ASSERT_TRUE(begun.ok()) << begun.status();
  const absl::StatusOr<Evaluation> priced = Price(*setting, begun->plan);
  ASSERT_TRUE(priced.ok()) << priced.status();
  PriceBook prices;
  const absl::StatusOr<Finalist> chosen = ChooseFinalist(*setting, {{"a test", begun->plan}}, &prices);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->plan.schedule, ScheduleFamily::kZeroBubble) << ToText(chosen->plan);
  EXPECT_LT(chosen->price, 0.999 * priced->plan.predicted.step_seconds);
  EXPECT_EQ(Validate(chosen->plan, setting->workload.model), absl::OkStatus());
  const absl::StatusOr<Evaluation> again = Price(*setting, chosen->plan);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->plan.predicted.step_seconds, chosen->price);
  EXPECT_TRUE(again->does_not_fit.empty());
}

TEST(AutoFinalistsTest, KeepsToTheEngineWhereThePlanShallRun) {
  const auto setting = Pair({.runnable = true});
  const absl::StatusOr<Evaluation> begun = Evaluate(*setting, OneUnit(*setting));
  ASSERT_TRUE(begun.ok()) << begun.status();
  PriceBook prices;
  const absl::StatusOr<Finalist> chosen = ChooseFinalist(*setting, {{"a test", begun->plan}}, &prices);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(ValidateForEngine(chosen->plan, setting->workload.model), absl::OkStatus());
  EXPECT_FALSE(chosen->plan.training);
}

// With everything kept the unit lacks 4 MiB as it is scheduled, and with all recomputed it has room left: in between is a plan
// that fits and is faster.
TEST(AutoFinalistsTest, WhatLacksMemoryAsScheduledIsMendedByItsPrice) {
  const auto roomy = Pair();
  const absl::StatusOr<Evaluation> kept = Price(*roomy, OneUnit(*roomy));
  ASSERT_TRUE(kept.ok()) << kept.status();
  int64_t peak = 0;
  ForEachRank(kept->plan, [&peak](const RankPlan& rank) { peak = std::max(peak, rank.predicted.peak_bytes); });
  const double gib = static_cast<double>(peak - (4 << 20)) / roomy->cluster.usable_memory / (1 << 30);
  Workload workload = SmallWorkload(1);
  workload.model.max_positions = workload.seq_len = 2048;
  const auto setting = MakeSetting(
      workload, {}, absl::StrFormat("%s[[card]]\nname = \"L4\"\nlike = \"L4\"\nmemory_gib = %.9f\n", kTwoCardsToml, gib));
  const absl::StatusOr<Evaluation> lacking = Evaluate(*setting, OneUnit(*setting));
  Plan all = OneUnit(*setting);
  for (RankPlan& rank : all.pipelines[0].stages[0].units[0].ranks) rank.recompute = OpSet::All();
  const absl::StatusOr<Evaluation> recomputed = Evaluate(*setting, std::move(all));
  ASSERT_TRUE(lacking.ok() && recomputed.ok()) << lacking.status() << recomputed.status();
  const absl::StatusOr<Evaluation> slow = Price(*setting, recomputed->plan);
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_TRUE(slow->does_not_fit.empty());
  PriceBook prices;
  const absl::StatusOr<Finalist> chosen = ChooseFinalist(*setting, {{"lacking", lacking->plan}}, &prices);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  const absl::StatusOr<Evaluation> priced = Price(*setting, chosen->plan);
  ASSERT_TRUE(priced.ok()) << priced.status();
  EXPECT_TRUE(priced->does_not_fit.empty()) << ToText(chosen->plan);
  EXPECT_LT(chosen->price, 0.95 * slow->plan.predicted.step_seconds);
}

TEST(AutoFinalistsTest, NothingToChooseFrom) {
  const auto setting = Pair();
  PriceBook prices;
  EXPECT_EQ(ChooseFinalist(*setting, {}, &prices).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace motley::planner
