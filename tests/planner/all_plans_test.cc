// The exhaustive enumeration itself: counted by hand, valid, without gaps that it does not name; and the floor that prunes it.
#include "tests/planner/all_plans.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/pricing/price.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/best_of_all_plans.h"
#include "tests/planner/offline_fixture.h"
#include "tests/planner/plan_fixture.h"
#include "tests/planner/tiny_settings.h"

namespace motley::planner {
namespace {

constexpr char kTwoCards[] = "[defaults]\nnic_gbit_per_second = 10\n[[node]]\ngpus = [\"T4\"]\n[[node]]\ngpus = [\"A6000\"]\n";
constexpr char kTwoAlike[] = "[[node]]\ngpus = [\"T4\", \"T4\"]\n";
constexpr char kWithHosts[] = "[defaults]\nhost_memory_gib = 8\n[[node]]\ngpus = [\"T4\"]\n";

std::unique_ptr<Setting> Tiny(const std::string& toml, int64_t layers, int64_t batch) {
  Workload workload = SmallWorkload(batch);
  workload.model.num_layers = layers;
  workload.model.num_heads = workload.model.num_kv_heads = 2;  // one split of a unit of two
  workload.model.head_dim = 256;
  return MakeSetting(workload, {}, toml);
}

int64_t Count(const Setting& setting, AllPlansGrid grid = {}) {
  int64_t count = 0;
  AllPlans(setting, std::move(grid)).ForEach([&](const Plan&) { ++count; });
  return count;
}

// One card, one layer: a batch of 2 is 2 or 1 + 1, kept or recomputed, under four schedules (interleaved needs two ministages).
TEST(AllPlans, CountedByHandOneCard) {
  const std::string toml = "[[node]]\ngpus = [\"T4\"]\n";
  EXPECT_EQ(Count(*Tiny(toml, 1, 2)), 2 * 2 * 4);
  // Two layers: in one ministage as before; or in two, where interleaved is a fifth schedule.
  EXPECT_EQ(Count(*Tiny(toml, 2, 2)), 2 * 2 * (4 + 5));
  // Hosts: each of three things offloaded or not.
  EXPECT_EQ(Count(*Tiny(kWithHosts, 1, 2)), 2 * 2 * 4 * 8);
}

// Two unlike cards, one layer, batch 1, four schedules, kept or recomputed:
//   one card alone                       2 x (2 x 4)                 = 16
//   one unit of two                      recompute 2 x 2, x 4        = 16
//   two units, one of which only stores  2 x 2 x 4 x ZeRO 1..3 x shards even, by memory, all on either (4) = 192
TEST(AllPlans, CountedByHandTwoCards) { EXPECT_EQ(Count(*Tiny(kTwoCards, 1, 1)), 16 + 16 + 192); }

// The same with like cards: one alone 8; one unit 16; one that stores: shards by memory are even, 2 x 4 x 3 x 3 = 72.
TEST(AllPlans, LikeCardsOnce) {
  EXPECT_EQ(Count(*Tiny(kTwoAlike, 1, 1)), 8 + 16 + 72);
  AllPlansGrid grid;
  grid.exchanges = true;
  EXPECT_EQ(Count(*Tiny(kTwoAlike, 1, 1), grid), 2 * 8 + 16 + 2 * 72);
}

// Two cards, two layers, batch 1, layered: stages of one layer each have two orders, kept or recomputed on each.
TEST(AllPlans, CountedByHandStages) {
  int64_t stages = 0;
  AllPlans(*Tiny(kTwoCards, 2, 1)).ForEach([&](const Plan& plan) {
    stages += plan.pipelines[0].stages.size() == 2 && plan.schedule == ScheduleFamily::kLayered ? 1 : 0;
  });
  EXPECT_EQ(stages, 2 * 2 * 2);
}

TEST(AllPlans, EveryPlanIsValidAndThereOnce) {
  const auto setting = Tiny(kTwoCards, 2, 2);
  std::set<std::string> seen;
  AllPlans(*setting).ForEach([&](const Plan& plan) {
    ASSERT_TRUE(Validate(plan, setting->workload.model).ok()) << Validate(plan, setting->workload.model) << "\n" << ToText(plan);
    EXPECT_TRUE(seen.insert(Definition(plan)).second) << ToText(plan);
  });
  EXPECT_GT(seen.size(), 1500u);
}

TEST(AllPlans, TheSameInEveryRun) {
  const auto setting = Tiny(kTwoAlike, 2, 2);
  std::string texts[2];
  for (std::string& text : texts) {
    AllPlans(*setting).ForEach(
        [&](const Plan& plan) { text += ToText(plan.pipelines[0].stages[0].units[0].ranks[0].recompute); });
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// What is left open where it is asked for is at its cheapest, so what is passed over would not have been better.
TEST(AllPlans, NothingUnderAChoiceThatIsNotWorthIt) {
  const auto setting = Tiny(kTwoCards, 2, 2);
  int64_t visited = 0;
  AllPlans(*setting).ForEach([](const Plan& plan) { return plan.pipelines.size() == 2; },
                             [&](const Plan& plan) {
                               ++visited;
                               EXPECT_EQ(plan.pipelines.size(), 2u);
                             });
  EXPECT_GT(visited, 0);
}

// The best of all plans is at most any strategy's, whatever is left out.
TEST(AllPlans, NoStrategyIsBetter) {
  TinySettings settings(5, {2, 2, 2, 3, 2, 3});
  for (int i = 0; i < 6; ++i) {
    const std::unique_ptr<Setting> setting = settings.Next();
    double fastest = std::numeric_limits<double>::infinity();
    std::string text;
    for (const CatalogEntry& strategy : Catalog()) {
      if (strategy.name == "auto") continue;  // chooses among shares between those of the grid
      const absl::StatusOr<Plan> plan = strategy.plan(*setting);
      if (!plan.ok()) continue;
      const absl::StatusOr<Evaluation> evaluation = Price(*setting, *plan);
      ASSERT_TRUE(evaluation.ok()) << strategy.name << ": " << evaluation.status();
      if (!evaluation->does_not_fit.empty() || evaluation->plan.predicted.step_seconds >= fastest) continue;
      fastest = evaluation->plan.predicted.step_seconds;
      text = ToText(evaluation->plan);
    }
    if (fastest == std::numeric_limits<double>::infinity()) continue;
    EXPECT_LE(FindBestOfAllPlans(*setting, {}, 1.5 * fastest).seconds, 1.001 * fastest) << i << "\n" << text;
  }
}

// The floor is below the simulator for every plan, and what it says cannot fit does not.
TEST(PlanFloor, IsSoundForEveryPlan) {
  TinySettings settings(6, {2, 2, 2, 3, 2, 2});
  double closest = 0;
  for (int i = 0; i < 6; ++i) {
    const std::unique_ptr<Setting> setting = settings.Next();
    int64_t n = 0;
    AllPlans(*setting).ForEach([&](const Plan& plan) {
      if (++n % 7 != 0) return;
      const PlanView view = ViewOf(*setting, plan, {false, false}).value();
      const Evaluation evaluation = Evaluate(*setting, plan).value();
      const double floor = PlanFloor(*setting, view).Seconds(), seconds = evaluation.plan.predicted.step_seconds;
      ASSERT_LE(floor, seconds * (1 + 1e-9)) << ToText(evaluation.plan);
      ASSERT_TRUE(MayFit(*setting, view) || !evaluation.does_not_fit.empty()) << ToText(evaluation.plan);
      closest = std::max(closest, floor / seconds);
    });
  }
  EXPECT_GT(closest, 0.9);  // else it would prune nothing
}

}  // namespace
}  // namespace motley::planner
