#include "planner/strategies/baton/baton_unit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "planner/strategies/baton/baton_lineup.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::string Mixed() { return ClusterText({{"n1", Cards("A100", 2)}, {"n2", Cards("T4", 2)}, {"n3", Cards("V100-16GB", 1)}}); }
int KindNamed(const Setting& setting, const std::string& prefix) {
  for (size_t k = 0; k < setting.cluster.kinds.size(); ++k) {
    if (setting.cluster.kinds[k].name.starts_with(prefix)) return static_cast<int>(k);
  }
  return -1;
}

// One rank with so many parts, recomputation by trying every set of the items.
struct Passes {
  double forward = 0, recompute = std::numeric_limits<double>::infinity(), backward = 0;
};
Passes BruteRank(const Setting& setting, int kind, int64_t parts, int64_t all_parts, bool with_reduction, const BatonRole& role) {
  const Costs& costs = setting.costs;
  RankDuty duty;
  duty.kind = kind;
  duty.layers = duty.largest_ministage = role.layers;
  duty.embedding = role.embedding;
  duty.head = role.head;
  duty.schedule = ScheduleFamily::k1F1B;
  duty.zero_stage = role.zero_stage;
  duty.tp_share = static_cast<double>(parts) / static_cast<double>(all_parts);
  duty.share = duty.tp_share;
  duty.in_flight = role.in_flight;
  const double m = static_cast<double>(role.microbatch), layers = static_cast<double>(role.layers);
  Passes passes;
  passes.forward = layers * costs.ForwardSeconds(kind, UnitKind::kLayer, m, duty.tp_share);
  passes.backward = layers * costs.BackwardSeconds(kind, UnitKind::kLayer, m, duty.tp_share);
  const std::vector<RecomputeItem> items = RecomputeItems(costs, kind, m, duty.tp_share, with_reduction);
  int device = 0;
  while (setting.KindOf(device) != kind) ++device;
  for (size_t mask = 0; mask < size_t{1} << items.size(); ++mask) {
    OpSet ops;
    double seconds = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if ((mask >> i & 1) == 0) continue;
      ops = ops | items[i].ops;
      seconds += layers * items[i].seconds;
    }
    duty.recompute = ops;
    if (MemoryOf(costs, duty, role.in_flight, role.microbatch, 0).total() > setting.UsableBytes(device)) continue;
    passes.recompute = std::min(passes.recompute, seconds);
  }
  return passes;
}

// Every split of the parts over two or three ranks.
double BruteUnit(const Setting& setting, const std::vector<int>& kinds, int64_t all_parts, const BatonRole& role) {
  std::vector<std::vector<Passes>> table(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (int64_t n = 0; n <= all_parts; ++n) {
      table[i].push_back(n == 0 ? Passes() : BruteRank(setting, kinds[i], n, all_parts, false, role));
    }
  }
  double best = std::numeric_limits<double>::infinity();
  const std::function<void(size_t, int64_t, Passes)> split = [&](size_t i, int64_t rest, Passes slowest) {
    if (i == kinds.size()) {
      if (rest == 0) best = std::min(best, slowest.forward + slowest.recompute + slowest.backward);
      return;
    }
    for (int64_t n = 1; n <= rest; ++n) {
      const Passes& own = table[i][n];
      split(i + 1, rest - n,
            {std::max(slowest.forward, own.forward), std::max(slowest.recompute, own.recompute),
             std::max(slowest.backward, own.backward)});
    }
  };
  split(0, all_parts, {0, 0, 0});
  return best;
}

TEST(BatonUnitTest, WithinOnePercentOfEverySplitAndEverySet) {
  const auto setting = SettingOf(Mixed(), "gpt3-1b", 64, 1024);
  BatonUnitSolver solver(*setting);
  const int a100 = KindNamed(*setting, "A100"), t4 = KindNamed(*setting, "T4"), v100 = KindNamed(*setting, "V100");
  int solved = 0;
  for (std::vector<int> kinds :
       {std::vector{a100, t4}, std::vector{t4, v100}, std::vector{a100, t4, v100}, std::vector{a100, t4, t4}}) {
    std::sort(kinds.begin(), kinds.end());
    for (const int64_t layers : {2, 12, 24}) {
      for (const int64_t microbatch : {1, 8, 16}) {
        BatonRole role;
        role.layers = layers;
        role.microbatch = microbatch;
        role.in_flight = 2;
        const double brute = BruteUnit(*setting, kinds, solver.parts(), role);
        const BatonUnit& unit = solver.Solve(solver.UnitClass(kinds), role);
        if (!unit.fits) {
          EXPECT_EQ(brute, std::numeric_limits<double>::infinity()) << layers << " layers of " << microbatch;
          EXPECT_GT(unit.missing_bytes, 0);
          continue;
        }
        ++solved;
        EXPECT_LE(unit.seconds, brute * 1.01) << layers << " layers of " << microbatch;
        EXPECT_GE(unit.seconds, brute * (1 - 1e-9));
        EXPECT_GE(unit.seconds, solver.LeastSeconds(solver.UnitClass(kinds), role));
      }
    }
  }
  EXPECT_GT(solved, 30);
}

TEST(BatonUnitTest, FasterRanksTakeMoreParts) {
  const auto setting = SettingOf(Mixed(), "gpt3-1b", 64, 1024);
  BatonUnitSolver solver(*setting);
  std::vector<int> kinds = {KindNamed(*setting, "A100"), KindNamed(*setting, "T4")};
  std::sort(kinds.begin(), kinds.end());
  BatonRole role;
  role.microbatch = 4;
  const BatonUnit& unit = solver.Solve(solver.UnitClass(kinds), role);
  ASSERT_TRUE(unit.fits);
  const size_t fast = kinds[0] == KindNamed(*setting, "A100") ? 0 : 1;
  EXPECT_GT(unit.ranks[fast].parts, unit.ranks[1 - fast].parts);
  EXPECT_EQ(unit.ranks[0].parts + unit.ranks[1].parts, solver.parts());
}

TEST(BatonUnitTest, MoreRanksThanPartsDoNotFit) {
  const auto setting = SettingOf(Mixed(), "gpt3-1b", 64, 1024);
  BatonUnitSolver solver(*setting);
  EXPECT_FALSE(solver.Solve(solver.UnitClass(std::vector<int>(static_cast<size_t>(solver.parts()) + 1, 0)), BatonRole()).fits);
}

TEST(BatonLineUpTest, UnitsOfLikeCardsAndOfUnlikeOnes) {
  const std::string cluster = ClusterText({{"n1", Cards("A100", 2) + ", " + Cards("T4", 2)}});
  const auto setting = SettingOf(cluster, "gpt3-1b", 64, 1024);
  const std::vector<BatonLineUp> line_ups = MakeLineUps(*setting, {0, 1}, 8, PublishedBaton());
  const auto has = [&](const std::vector<std::vector<int>>& units) {
    return std::any_of(line_ups.begin(), line_ups.end(), [&](const BatonLineUp& l) { return l.units == units; });
  };
  EXPECT_TRUE(has({{0}, {1}, {2}, {3}}));
  EXPECT_TRUE(has({{0, 1}, {2, 3}}));
  EXPECT_TRUE(has({{0, 2}, {1, 3}}));
  EXPECT_TRUE(has({{0, 1, 2, 3}}));
  for (size_t i = 0; i < line_ups.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(line_ups[i].units, line_ups[j].units);
  }
}

TEST(BatonLineUpTest, SmallClustersCrossNodesAndOddNodesKeepTheirRest) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("A100", 3)}, {"n2", Cards("T4", 2)}}), "gpt3-1b", 64, 1024);
  const std::vector<BatonLineUp> line_ups = MakeLineUps(*setting, {0, 1}, 8, {});
  const auto has = [&](const std::vector<std::vector<int>>& units) {
    return std::any_of(line_ups.begin(), line_ups.end(), [&](const BatonLineUp& l) { return l.units == units; });
  };
  EXPECT_TRUE(has({{0, 1}, {2}, {3, 4}}));  // the third card is a unit of its own
  EXPECT_TRUE(has({{0, 1, 2}, {3}, {4}}));  // a degree for each kind of node
  EXPECT_TRUE(has({{0, 1, 2, 3, 4}}));      // across nodes
  EXPECT_TRUE(has({{0, 3}, {1, 4}, {2}}));
  EXPECT_TRUE(has({{0, 1, 2}}));  // without the slowest kind
}

}  // namespace
}  // namespace motley::planner
