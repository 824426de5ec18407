#include "planner/strategies/baton/recompute_knapsack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

OpSet Nth(int i) { return OpSet::None().With(static_cast<Op>(i)); }

// The cheapest subset that keeps at most `budget`, by trying all.
double Brute(const std::vector<RecomputeItem>& items, double budget) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t mask = 0; mask < size_t{1} << items.size(); ++mask) {
    double kept = 0, seconds = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (mask >> i & 1) {
        seconds += items[i].seconds;
      } else {
        kept += items[i].saved_bytes;
      }
    }
    if (kept <= budget) best = std::min(best, seconds);
  }
  return best;
}

// The cheapest that keeps at most so much; nullptr: not even the most frugal one does.
const RecomputeOption* CheapestWithin(const std::vector<RecomputeOption>& frontier, double budget_bytes) {
  const auto at = std::find_if(frontier.begin(), frontier.end(),
                               [&](const RecomputeOption& option) { return option.kept_bytes <= budget_bytes; });
  return at == frontier.end() ? nullptr : &*at;
}

TEST(RecomputeKnapsackTest, AgreesWithBruteForce) {
  std::mt19937 random(1);
  for (int instance = 0; instance < 500; ++instance) {
    std::vector<RecomputeItem> items;
    const int count = static_cast<int>(random() % 12) + 1;
    double all = 0;
    for (int i = 0; i < count; ++i) {
      items.push_back({Nth(i), static_cast<double>(random() % 20 + 1), static_cast<double>(random() % 30)});
      all += items.back().saved_bytes;
    }
    const std::vector<RecomputeOption> frontier = RecomputeFrontier(items);
    EXPECT_EQ(frontier.front().ops, OpSet::None());
    for (size_t i = 1; i < frontier.size(); ++i) {
      EXPECT_GT(frontier[i].seconds, frontier[i - 1].seconds);
      EXPECT_LT(frontier[i].kept_bytes, frontier[i - 1].kept_bytes);
    }
    for (int b = 0; b < 10; ++b) {
      const double budget = all * b / 9;
      const RecomputeOption* option = CheapestWithin(frontier, budget);
      ASSERT_NE(option, nullptr);
      EXPECT_LE(option->kept_bytes, budget);
      EXPECT_DOUBLE_EQ(option->seconds, Brute(items, budget)) << "instance " << instance << " budget " << budget;
    }
  }
}

TEST(RecomputeKnapsackTest, NoOptionBelowWhatMustStay) {
  const std::vector<RecomputeOption> nothing_to_choose = RecomputeFrontier({});
  ASSERT_EQ(nothing_to_choose.size(), 1u);
  EXPECT_NE(CheapestWithin(nothing_to_choose, 0), nullptr);
  EXPECT_EQ(CheapestWithin(nothing_to_choose, -1), nullptr);
}

TEST(RecomputeKnapsackTest, ALayersItemsFreeAllThatItKeeps) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("A10G", 1)}}), "llama-7b", 8, 512);
  const Costs& costs = setting->costs;
  const double all = static_cast<double>(costs.SavedBytes(0, UnitKind::kLayer, OpSet::None(), 2, 1));
  double freed = 0;
  OpSet seen;
  for (const RecomputeItem& item : RecomputeItems(costs, 0, 2, 1, true)) {
    freed += item.saved_bytes;
    EXPECT_GT(item.seconds, 0) << ToText(item.ops);
    for (int op = 0; op <= static_cast<int>(Op::kLmHeadLoss); ++op) {
      EXPECT_FALSE(seen.Has(static_cast<Op>(op)) && item.ops.Has(static_cast<Op>(op))) << "an operator in two items: " << op;
    }
    seen = seen | item.ops;
  }
  EXPECT_NEAR(freed, all, 16);  // bytes are rounded by item
}

TEST(RecomputeKnapsackTest, ReductionsStayOutWhereARankMayNotDecideAlone) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("A10G", 2)}}), "llama-7b", 8, 512);
  bool with = false;
  for (const RecomputeItem& item : RecomputeItems(setting->costs, 0, 1, 0.5, true)) with = with || item.ops.Has(Op::kAttnOut);
  EXPECT_TRUE(with);
  for (const RecomputeItem& item : RecomputeItems(setting->costs, 0, 1, 0.5, false)) EXPECT_FALSE(item.ops.Has(Op::kAttnOut));
}

// The first operators to go are those that free most for least: norms and activations before products.
TEST(RecomputeKnapsackTest, CheapOperatorsGoFirst) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("A10G", 1)}}), "llama-7b", 8, 512);
  const std::vector<RecomputeOption> frontier = RecomputeFrontier(RecomputeItems(setting->costs, 0, 1, 1, true));
  ASSERT_GT(frontier.size(), 3u);
  EXPECT_FALSE(frontier[1].ops.Has(Op::kUp));
  EXPECT_FALSE(frontier[1].ops.Has(Op::kQkv));
  EXPECT_NEAR(frontier.back().kept_bytes, 0, 16);
}

}  // namespace
}  // namespace motley::planner
