// With `runnable` every strategy stays inside what the engine runs, and auto is as fast as any of them.
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/answers/plan_answer.h"
#include "planner/graph/program_walk.h"
#include "planner/plan/each_rank.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/offline_fixture.h"
#include "tests/planner/scheduled.h"
#include "tests/planner/tiny_settings.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Setting> Runnable(const Setting& open, PlanRequest request = {}) {
  Workload workload = open.workload;
  workload.dtype = DType::kFloat32;
  request.runnable = true;
  auto setting = Setting::Create(open.cluster, std::move(workload), std::move(request), nullptr);
  if (!setting.ok()) throw std::runtime_error(std::string(setting.status().message()));
  return *std::move(setting);
}

// The engine takes it, and its ranks' programs come to an end together.
void ExpectRuns(const Setting& setting, const Plan& plan) {
  ASSERT_EQ(ValidateForEngine(plan, setting.workload.model), absl::OkStatus()) << ToText(plan);
  const auto programs = ScheduleAndLower(setting, plan);
  ASSERT_TRUE(programs.ok()) << programs.status() << ToText(plan);
  EXPECT_EQ(CheckOrder(*programs), absl::OkStatus()) << ToText(plan);
}

// How many plans there were.
int ExpectAllRun(const Setting& setting) {
  const auto best = PlanAndEvaluate(setting, *FindInCatalog("auto"));
  if (best.ok()) ExpectRuns(setting, best->plan);
  int plans = 0;
  for (const CatalogEntry& entry : Catalog()) {
    if (entry.name == "auto") continue;
    const auto priced = PlanAndEvaluate(setting, entry);
    if (!priced.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(priced.status())) << entry.name << ": " << priced.status();
      continue;
    }
    ++plans;
    ExpectRuns(setting, priced->plan);
    EXPECT_TRUE(best.ok()) << entry.name << ": " << best.status();
    if (!best.ok()) continue;
    // Classes' and ranks' programs of one layered plan differ by the rounding of shares to whole elements.
    EXPECT_LE(best->plan.predicted.step_seconds, priced->plan.predicted.step_seconds * (1 + 1e-8))
        << entry.name << " is faster by " << best->plan.predicted.step_seconds / priced->plan.predicted.step_seconds - 1 << "\n"
        << ToText(best->plan) << ToText(priced->plan);
  }
  return plans;
}

TEST(RunnablePlansTest, EveryStrategysPlanRunsAndAutoIsTheFastest) {
  TinySettings tiny(3, {1, 6, 2, 8, 2, 24});
  int plans = 0, settings = 0;
  for (; settings < 60; ++settings) {
    PlanRequest request;
    request.fidelity = settings % 4 == 3 ? Fidelity::kPublished : Fidelity::kTuned;
    request.budget_nodes = 50'000;
    plans += ExpectAllRun(*Runnable(*tiny.Next(), request));
  }
  EXPECT_GT(plans, 5 * settings);
}

// By some strategy on some of these clusters.
TEST(RunnablePlansTest, UnitsOfSeveralRanksAndZeroBubbleAreChosen) {
  TinySettings tiny(23, {2, 8, 2, 12, 2, 12});
  int wide = 0, unequal = 0, halves = 0;
  for (int i = 0; i < 60; ++i) {
    const std::unique_ptr<Setting> setting = Runnable(*tiny.Next());
    for (const char* name : {"auto", "baton", "megatron", "hexiscale"}) {
      const auto priced = PlanAndEvaluate(*setting, *FindInCatalog(name));
      if (!priced.ok()) continue;
      ExpectRuns(*setting, priced->plan);
      bool is_wide = false, is_unequal = false;
      ForEachUnit(priced->plan, [&](const UnitPlan& unit) {
        is_wide |= unit.ranks.size() > 1;
        is_unequal |= unit.ranks.size() > 1 && unit.ranks[0].tp_share != unit.ranks.back().tp_share;
      });
      wide += is_wide;
      unequal += is_unequal;
      halves += TraitsOf(priced->plan.schedule).splits_backward;
    }
  }
  EXPECT_GE(wide, 5);
  EXPECT_GE(unequal, 5);
  EXPECT_GE(halves, 5);
}

TEST(RunnablePlansTest, AutoHasPipelinesWhereTheyAreFaster) {
  // Two cards of one kind in each of two nodes, a slow network between them.
  const char* const toml = R"(name = "far"
[defaults]
nic_gbit_per_second = 1
[[node]]
name = "n1"
gpus = [{card = "A6000", count = 2}]
[[node]]
name = "n2"
gpus = [{card = "A6000", count = 2}]
)";
  PlanRequest request;
  request.runnable = true;
  const std::unique_ptr<Setting> setting = MakeSetting(LargeWorkload(2, 32), request, toml);
  const auto best = PlanAndEvaluate(*setting, *FindInCatalog("auto"));
  const auto one_stage = PlanAndEvaluate(*setting, *FindInCatalog("cephalo"));
  ASSERT_TRUE(best.ok()) << best.status();
  ASSERT_TRUE(one_stage.ok()) << one_stage.status();
  EXPECT_GT(best->plan.pipelines[0].stages.size(), 1u);
  EXPECT_LT(best->plan.predicted.step_seconds, 0.7 * one_stage->plan.predicted.step_seconds);
  ExpectRuns(*setting, best->plan);
}

// Host memory is there to be used.
TEST(RunnablePlansTest, WhatHostsOfferIsTakenAsTheEngineRunsIt) {
  TinySettings tiny(5, {2, 4, 2, 4, 4, 8});
  for (int i = 0; i < 12; ++i) {
    std::unique_ptr<Setting> open = tiny.Next();
    for (ClusterNode& node : open->cluster.nodes) {
      node.host_memory_bytes = int64_t{1} << 40;
      if (node.host_link_bytes_per_second == 0) node.host_link_bytes_per_second = 1e10;
    }
    const std::unique_ptr<Setting> setting = Runnable(*open);
    EXPECT_EQ(setting->MayOffload(), OffloadKinds::All());
    ExpectAllRun(*setting);
  }
}

// Of both fidelities; what searches may not use they do not even consider, so that they lose nothing by it.
TEST(RunnablePlansTest, WhatWaitsOnTheHostIsWhatTheRequestAllows) {
  TinySettings tiny(11, {2, 4, 2, 4, 4, 8});
  OffloadKinds seen;
  for (int i = 0; i < 16; ++i) {
    const std::unique_ptr<Setting> open = tiny.Next();
    for (ClusterNode& node : open->cluster.nodes) {
      node.host_memory_bytes = int64_t{1} << 40;
      if (node.host_link_bytes_per_second == 0) node.host_link_bytes_per_second = 1e12;
    }
    PlanRequest request = open->request;
    request.offload = {(i & 1) != 0, (i & 2) != 0, (i & 4) != 0};
    request.fidelity = i < 8 ? Fidelity::kTuned : Fidelity::kPublished;
    const auto setting = Setting::Create(open->cluster, open->workload, request, nullptr);
    ASSERT_TRUE(setting.ok()) << setting.status();
    EXPECT_EQ((*setting)->MayOffload(), request.offload);
    for (const CatalogEntry& strategy : Catalog()) {
      const auto found = PlanAndEvaluate(**setting, strategy);
      if (!found.ok()) continue;
      ForEachRank(found->plan, [&](const RankPlan& rank) {
        const OffloadKinds kinds = rank.offload;
        EXPECT_FALSE(kinds.Without(request.offload).any()) << strategy.name << " offloads " << InWords(kinds);
        seen.activations |= kinds.activations, seen.parameters |= kinds.parameters, seen.optimizer |= kinds.optimizer;
      });
    }
  }
  EXPECT_TRUE(seen.activations || seen.parameters) << InWords(seen);
}

TEST(RunnablePlansTest, RecomputationIsAsAskedFor) {
  for (const RecomputePolicy policy : {RecomputePolicy::kNone, RecomputePolicy::kFull}) {
    PlanRequest request;
    request.runnable = true;
    request.recompute = policy;
    const auto priced = PlanAndEvaluate(*MakeSetting(SmallWorkload(), request), *FindInCatalog("auto"));
    ASSERT_TRUE(priced.ok()) << priced.status();
    ForEachRank(priced->plan, [&](const RankPlan& rank) {
      EXPECT_EQ(rank.recompute, policy == RecomputePolicy::kNone ? OpSet::None() : OpSet::All());
    });
  }
}

TEST(RunnablePlansTest, EveryStrategyPlansHalfTypes) {
  PlanRequest request;
  request.runnable = true;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    Workload workload = SmallWorkload();
    workload.dtype = dtype;
    const auto setting = MakeSetting(workload, request);
    EXPECT_EQ(setting->costs.gradient_bytes(), 4) << "as the engine keeps them";
    EXPECT_GE(ExpectAllRun(*setting), 4);
    const auto plan = PlanAndEvaluate(*setting, *FindInCatalog("cephalo"));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->plan.dtype, dtype);
  }
}

// Fewer layers than cards: several pipelines take them all.
TEST(RunnablePlansTest, HexiscaleHasSeveralPipelines) {
  PlanRequest request;
  request.runnable = true;
  Workload workload = SmallWorkload();
  workload.model.num_layers = 3;
  request.max_tp = 1;
  const auto setting = MakeSetting(workload, request);
  const auto plan = PlanAndEvaluate(*setting, *FindInCatalog("hexiscale"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->plan.pipelines.size(), 1u);
  EXPECT_EQ(ValidateForEngine(plan->plan, workload.model), absl::OkStatus());
  const auto programs = ScheduleAndLower(*setting, plan->plan);
  ASSERT_TRUE(programs.ok()) << programs.status();
  EXPECT_EQ(CheckOrder(*programs), absl::OkStatus());
}

}  // namespace
}  // namespace motley::planner
