// What a request says of recomputation holds for every strategy: never, everywhere, or where memory asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/answers/plan_answer.h"
#include "planner/plan/each_rank.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/offline_fixture.h"
#include "tests/planner/strategies/stages_fixture.h"
#include "tests/planner/tiny_settings.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

PlanRequest Asking(RecomputePolicy policy, bool runnable = true) {
  PlanRequest request;
  request.recompute = policy;
  request.runnable = runnable;
  request.budget_nodes = 50'000;
  return request;
}

std::unique_ptr<Setting> Asked(const Setting& open, const PlanRequest& request) {
  Workload workload = open.workload;
  if (request.runnable) workload.dtype = DType::kFloat32;
  return Setting::Create(open.cluster, std::move(workload), request, nullptr).value();
}

// Of the ranks that compute.
std::set<std::string> Recomputed(const Plan& plan) {
  std::set<std::string> found;
  ForEachUnit(plan, [&](const UnitPlan& unit) {
    for (const RankPlan& rank : unit.ranks) {
      if (unit.batch() > 0) found.insert(ToText(rank.recompute));
    }
  });
  return found;
}

// How many strategies had a plan.
int ExpectAllFollow(const Setting& setting) {
  const std::string wanted = setting.request.recompute == RecomputePolicy::kNone ? "none" : "full";
  int plans = 0;
  for (const CatalogEntry& entry : Catalog()) {
    const absl::StatusOr<Plan> plan = entry.plan(setting);  // before what the answer checks
    if (!plan.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(plan.status())) << entry.name << ": " << plan.status();
      continue;
    }
    ++plans;
    EXPECT_EQ(Recomputed(*plan), std::set<std::string>{wanted}) << entry.name << "\n" << ToText(*plan);
    EXPECT_EQ(PlanAndEvaluate(setting, entry).status(), absl::OkStatus()) << entry.name;
  }
  return plans;
}

TEST(RecomputePolicyTest, EveryStrategyFollowsIt) {
  for (const RecomputePolicy policy : {RecomputePolicy::kNone, RecomputePolicy::kFull}) {
    for (const bool runnable : {true, false}) {
      const auto roomy = MakeSetting(SmallWorkload(), Asking(policy, runnable));
      EXPECT_EQ(ExpectAllFollow(*roomy), static_cast<int>(Catalog().size()));
      TinySettings tiny(11, {2, 6, 4, 8, 4, 24});
      for (int i = 0; i < 6; ++i) ExpectAllFollow(*Asked(*tiny.Next(), Asking(policy, runnable)));
    }
  }
}

// The seconds of zorse's plan; infinite where nothing fits.
double ZorseSeconds(const Setting& setting) {
  const auto priced = PlanAndEvaluate(setting, *FindInCatalog("zorse"));
  if (priced.ok()) return priced->plan.predicted.step_seconds;
  EXPECT_TRUE(absl::IsResourceExhausted(priced.status())) << priced.status();
  return std::numeric_limits<double>::infinity();
}

void ExpectAutoIsNoSlower(const Setting& open, bool runnable) {
  const double full = ZorseSeconds(*Asked(open, Asking(RecomputePolicy::kFull, runnable)));
  const double open_seconds = ZorseSeconds(*Asked(open, Asking(RecomputePolicy::kAuto, runnable)));
  EXPECT_LE(open_seconds, full) << open.cluster.name;
}

TEST(RecomputePolicyTest, ZorseIsNoSlowerWhereItMayKeep) {
  for (const char* preset : {"zorse-a", "zorse-b", "hexiscale-1", "cephalo-a"}) {
    ExpectAutoIsNoSlower(*PresetSetting(preset, "llama-7b", 256, 512), false);
  }
  TinySettings tiny(7, {2, 6, 4, 12, 4, 24});
  for (int i = 0; i < 40; ++i) ExpectAutoIsNoSlower(*tiny.Next(), i % 2 == 0);
}

TEST(RecomputePolicyTest, ZorseKeepsWhereThereIsRoom) {
  const auto full = MakeSetting(SmallWorkload(), Asking(RecomputePolicy::kFull));
  const auto open = MakeSetting(SmallWorkload(), Asking(RecomputePolicy::kAuto));
  const auto plan = PlanAndEvaluate(*open, *FindInCatalog("zorse"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(Recomputed(plan->plan), std::set<std::string>{"none"});
  EXPECT_LT(plan->plan.predicted.step_seconds, 0.9 * ZorseSeconds(*full));
}

// Cards alike but for their memory, two in each of two nodes.
std::unique_ptr<Setting> OfMemory(double first_gib, double second_gib, int64_t batch, int64_t seq_len, PlanRequest request) {
  std::string toml = "name = \"by memory\"\n[defaults]\nnic_gbit_per_second = 5\n";
  for (const double gib : {first_gib, second_gib}) {
    absl::StrAppend(&toml, "[[card]]\nname = \"of ", gib, " GiB\"\nfp32_tflops = 19.5\nmemory_gib = ", gib,
                    "\nmemory_gb_per_second = 1500\nlink_gb_per_second = 12\n");
    if (first_gib == second_gib) break;
  }
  for (const double gib : {first_gib, second_gib}) {
    absl::StrAppend(&toml, "[[node]]\ngpus = [{card = \"of ", gib, " GiB\", count = 2}]\n");
    if (first_gib == second_gib) break;
  }
  return SettingOf(toml, "gpt2-350m", batch, seq_len, std::move(request), DType::kFloat32);
}

// The short cards only hold their part of the activations by recomputing.
TEST(RecomputePolicyTest, ZorseRecomputesOnlyWhereMemoryAsksForIt) {
  for (const double gib : {4.0, 5.0, 5.5}) {
    const auto setting = [gib](RecomputePolicy policy) { return OfMemory(40, gib, 32, 512, Asking(policy)); };
    const auto plan = PlanAndEvaluate(*setting(RecomputePolicy::kAuto), *FindInCatalog("zorse"));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(Recomputed(plan->plan), (std::set<std::string>{"none", "full"})) << ToText(plan->plan);
    const double seconds = plan->plan.predicted.step_seconds;
    EXPECT_LT(seconds, 0.95 * ZorseSeconds(*setting(RecomputePolicy::kFull))) << gib;
    EXPECT_LT(seconds, 0.95 * ZorseSeconds(*setting(RecomputePolicy::kNone))) << gib;
  }
}

// Nothing fits that keeps all activations: recomputing is among the ways out.
TEST(RecomputePolicyTest, WhereNothingFitsTheWayOutNamesRecomputation) {
  for (const CatalogEntry& entry : Catalog()) {
    PlanRequest request = Asking(RecomputePolicy::kNone);
    request.strategy = std::string(entry.name);
    request.max_tp = 1;
    const absl::Status status = AnswerPlan(*OfMemory(5.25, 5.25, 2, 1024, request), nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << entry.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("without --recompute none")) << entry.name;
    request.recompute = RecomputePolicy::kAuto;
    EXPECT_EQ(AnswerPlan(*OfMemory(5.25, 5.25, 2, 1024, request), nullptr).status(), absl::OkStatus()) << entry.name;
  }
}

// As published Zorse and HexiScale recompute everything; asked for the contrary they are refused by name.
TEST(RecomputePolicyTest, PublishedMethodsThatAlwaysRecomputeSaySo) {
  PlanRequest request = Asking(RecomputePolicy::kNone);
  request.fidelity = Fidelity::kPublished;
  for (const char* name : {"zorse", "hexiscale"}) {
    const absl::Status status = PlanAndEvaluate(*MakeSetting(SmallWorkload(), request), *FindInCatalog(name)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--fidelity tuned")) << name;
  }
}

}  // namespace
}  // namespace motley::planner
