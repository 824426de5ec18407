// One plan has one price wherever it is shown, and auto is not beaten by it.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/answers/given_plan.h"
#include "planner/answers/plan_answer.h"
#include "planner/answers/runs_here.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/price.h"
#include "planner/strategies/catalog.h"
#include "planner/util/lack_of_memory.h"
#include "planner/util/work_count.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/lowering/measured_passes.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

// Two workstations and a node of old cards behind 10 Gbit/s; cards of two nodes that share stages; a slow pair.
constexpr const char* kClusters[] = {R"(name = "lab"
[defaults]
nic_gbit_per_second = 10
[[node]]
name = "ws"
gpus = [{card = "RTX-3090", count = 2}]
[[node]]
name = "old"
gpus = [{card = "RTX-2080-Ti", count = 4}]
[[node]]
name = "new"
gpus = ["RTX-4090"]
)",
                                     R"(name = "unlike"
[defaults]
nic_gbit_per_second = 25
[[node]]
name = "a"
gpus = [{card = "A100-40GB", count = 2}, "V100-16GB"]
[[node]]
name = "b"
gpus = ["T4", {card = "A10G", count = 2}]
)",
                                     R"(name = "far"
[defaults]
nic_gbit_per_second = 1
[[node]]
name = "n"
count = 2
gpus = [{card = "A6000", count = 2}]
)"};

std::unique_ptr<Setting> SettingFor(const char* toml, const char* model, DType dtype, bool runnable) {
  Workload workload = *LoadModel(model);
  workload.global_batch = 64;
  workload.seq_len = 1024;
  workload.dtype = dtype;
  PlanRequest request;
  request.runnable = runnable;
  request.budget_nodes = 20'000;
  return MakeSetting(std::move(workload), request, toml);
}

void ExpectOnePrice(Setting setting) {
  const std::vector<ComparisonRow> rows = Compare(setting);
  const double best = rows.back().plan.predicted.step_seconds;
  ASSERT_EQ(rows.back().strategy, "auto");
  for (const ComparisonRow& row : rows) {
    if (!row.status.ok()) continue;
    EXPECT_LE(best, row.plan.predicted.step_seconds * (1 + 1e-9)) << row.strategy << " beats auto";
    setting.request.strategy = row.strategy;
    const auto answer = AnswerPlan(setting);
    ASSERT_TRUE(answer.ok()) << row.strategy << answer.status();
    const PlanPrediction& shown = answer->evaluation.plan.predicted;
    EXPECT_EQ(shown.step_seconds, row.plan.predicted.step_seconds) << row.strategy;
    EXPECT_TRUE(shown.as_run) << row.strategy;
    const auto given = PriceGivenPlan(setting, *PlanFromJson(ToJson(answer->evaluation.plan)));
    ASSERT_TRUE(given.ok()) << row.strategy << given.status();
    EXPECT_EQ(given->evaluation.plan.predicted.step_seconds, shown.step_seconds) << row.strategy;
    EXPECT_EQ(given->evaluation.plan.predicted.binding_constraint, shown.binding_constraint) << row.strategy;
    if (!row.runs.status.ok()) continue;
    const auto as_run = PriceGivenPlan(setting.AsRun(), *PlanFromJson(ToJson(answer->evaluation.plan)));
    EXPECT_EQ(as_run->evaluation.plan.predicted.step_seconds, shown.step_seconds) << row.strategy;
  }
}

TEST(OnePriceTest, PlannedComparedAndSimulatedAreOne) {
  for (const char* toml : kClusters) {
    for (const char* model : {"llama-1.1b", "llama-3b"}) {
      for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
        for (const bool runnable : {true, false}) {
          SCOPED_TRACE(absl::StrCat(toml, model, " ", std::string(DTypeName(dtype)), runnable ? " runnable" : ""));
          ExpectOnePrice(*SettingFor(toml, model, dtype, runnable));
        }
      }
    }
  }
}

void ExpectOnePriceOf(const Setting& setting, const Plan& plan) {
  constexpr double kSame = 1e-9;
  const auto priced = Price(setting, plan);
  ASSERT_TRUE(priced.ok()) << priced.status();
  const double seconds = priced->plan.predicted.step_seconds;
  const auto near = [seconds](double other) { return std::abs(other - seconds) <= kSame * seconds; };
  // As simulated from a file, and as a job's plan in force is shown.
  for (const Plan& file : {*PlanFromJson(ToJson(plan)), *PlanFromJson(ToJson(priced->plan))}) {
    const auto given = PriceGivenPlan(setting, file);
    ASSERT_TRUE(given.ok()) << given.status();
    EXPECT_TRUE(near(given->evaluation.plan.predicted.step_seconds)) << ToText(plan);
  }
  // Asking for what runs changes no plan's number.
  EXPECT_EQ(Price(setting.AsRun(), plan)->plan.predicted.step_seconds, seconds);
  // As a strategy's searches offer it to auto, which prices its finalists beside others.
  const auto offered = Evaluate(setting, plan);
  ASSERT_TRUE(offered.ok()) << offered.status();
  std::vector<Contender> contenders = {{&offered->plan}};
  if (priced->does_not_fit.empty() && offered->does_not_fit.empty()) {
    ASSERT_TRUE(FindFastest(setting, &contenders).ok());
    EXPECT_TRUE(near(contenders[0].price)) << contenders[0].price << " and " << seconds << "\n" << ToText(plan);
  }
}

TEST(OnePriceTest, RandomPlansHaveOneOnEveryRoad) {
  RandomPlans random(26);
  int offloading = 0, as_run = 0;
  while (offloading + as_run < 500) {
    const auto open = random.NextSetting();
    Plan plan = random.Next(*open);
    const bool runnable = random.Below(2) == 0;
    if (runnable) MakeRunnable(&plan);
    if (!Validate(plan, open->workload.model).ok()) continue;
    if (runnable && !ValidateForEngine(plan, open->workload.model).ok()) continue;
    bool offloads = false;
    ForEachRank(plan, [&](const RankPlan& rank) { offloads |= rank.offload.any(); });
    ++(offloads ? offloading : as_run);
    ExpectOnePriceOf(*open, plan);
  }
  EXPECT_GT(offloading, 50);
  EXPECT_GT(as_run, 150);
}

bool SharesAUnit(const Plan& plan) {
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      for (const UnitPlan& unit : stage.units) {
        if (unit.ranks.size() > 1) return true;
      }
    }
  }
  return false;
}

// Of those to which halves of a backward and parts of a unit make a difference.
TEST(OnePriceTest, RandomPlansOfMeasuredHalvesAndPartsToo) {
  RandomPlans random(27);
  int split = 0, shared = 0, as_run = 0;
  while (split + shared < 120) {
    const auto open = Measured(*random.NextSetting(), {.input = 0.7, .weight = 0.4});
    Plan plan = random.Next(*open);
    const bool runnable = random.Below(2) == 0;
    if (runnable) MakeRunnable(&plan);
    const bool splits = TraitsOf(plan.schedule).splits_backward;
    if (!splits && !SharesAUnit(plan)) continue;
    if (!Validate(plan, open->workload.model).ok()) continue;
    if (runnable && !ValidateForEngine(plan, open->workload.model).ok()) continue;
    ++(splits ? split : shared);
    as_run += runnable ? 1 : 0;
    ExpectOnePriceOf(*open, plan);
  }
  EXPECT_GT(split, 30);
  EXPECT_GT(shared, 30);
  EXPECT_GT(as_run, 20);
}

// What binds is said of the step that is shown.
TEST(OnePriceTest, WhatBindsIsOfTheProgramsToo) {
  const auto setting = SettingFor(kClusters[0], "llama-1.1b", DType::kFloat16, true);
  auto merged = Evaluate(*setting, *PlanHexiscale(*setting));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(merged->plan.predicted.as_run);
  merged->plan.predicted.binding_constraint = "another graph's";
  const auto priced = Price(*setting, merged->plan);
  ASSERT_TRUE(priced.ok()) << priced.status();
  const PlanPrediction& predicted = priced->plan.predicted;
  EXPECT_TRUE(predicted.as_run);
  EXPECT_EQ(predicted.step_seconds, ToSeconds(priced->timeline.end));
  EXPECT_EQ(predicted.binding_constraint.rfind("compute of ", 0), 0u) << predicted.binding_constraint;
}

// What no engine runs yet has its number all the same, in any setting, and programs.
TEST(OnePriceTest, WhatDoesNotRunIsPricedAsItWould) {
  RandomPlans random(29);
  for (int priced_plans = 0; priced_plans < 5;) {
    const auto open = random.NextSetting();
    Plan plan = random.Next(*open);
    MakeRunnable(&plan);
    if (plan.pipelines.size() == 1) continue;
    plan.pipelines[0].stages[0].units[0].ranks[0].offload.parameters = true;
    if (!Validate(plan, open->workload.model).ok()) continue;
    const auto priced = Price(open->AsRun(), plan);
    ASSERT_TRUE(priced.ok()) << priced.status();
    ++priced_plans;
    EXPECT_TRUE(priced->plan.predicted.as_run);
    EXPECT_EQ(priced->plan.predicted.step_seconds, Price(*open, plan)->plan.predicted.step_seconds);
    EXPECT_EQ(priced->programs.size(), priced->task_of.size());
    EXPECT_FALSE(priced->programs.empty());
    EXPECT_EQ(FindRunsHere(*open, priced->plan).status.code(), absl::StatusCode::kUnimplemented);
  }
}

// Asked without seconds: on cards of half the memory some do not.
TEST(OnePriceTest, WhetherAPlanFitsIsAsThePriceCountsIt) {
  RandomPlans random(28);
  int fits = 0, lacks = 0;
  while (fits + lacks < 200) {
    auto open = random.NextSetting();
    for (CardKind& kind : open->cluster.kinds) kind.memory_bytes /= 14;
    Plan plan = random.Next(*open);
    if (random.Below(2) == 0) MakeRunnable(&plan);
    if (!Validate(plan, open->workload.model).ok()) continue;
    const auto priced = Price(*open, plan);
    ASSERT_TRUE(priced.ok()) << priced.status();
    const absl::Status asked = FitsAsScheduled(*open, plan);
    EXPECT_EQ(asked.ok(), priced->does_not_fit.empty()) << asked << ToText(plan);
    if (!asked.ok()) EXPECT_EQ(LackingBytes(asked), priced->lacking_bytes);
    const auto evaluated = Evaluate(*open, plan);
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    const absl::Status of_the_full = FitsAsScheduled(*open, evaluated->plan);
    EXPECT_EQ(of_the_full, asked) << ToText(plan);
    ++(asked.ok() ? fits : lacks);
  }
  EXPECT_GT(fits, 20);
  EXPECT_GT(lacks, 20);
}

// Of one price each of these is made once and carried.
TEST(OnePriceTest, APriceResolvesItsPlanOnce) {
  const auto setting = SettingFor(kClusters[1], "llama-1.1b", DType::kFloat16, false);
  auto plan = PlanAndEvaluate(*setting, *FindInCatalog("megatron"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  plan->plan.training.reset();
  WorkOfThread() = {};
  ASSERT_TRUE(Price(*setting, plan->plan).ok());
  EXPECT_EQ(WorkOfThread().views, 1);
  EXPECT_EQ(WorkOfThread().slices, 1);
  EXPECT_EQ(WorkOfThread().walks, static_cast<int>(plan->plan.pipelines.size()));
  EXPECT_EQ(WorkOfThread().validations, 1);
}

}  // namespace
}  // namespace motley::planner
