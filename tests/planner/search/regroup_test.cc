#include "planner/search/regroup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/pricing/evaluate.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using Groups = std::vector<std::vector<int>>;

// Devices 0-3 A100, 4-7 and 8-11 T4, 12 and 13 V100.
std::unique_ptr<Setting> Boxes(PlanRequest request = {}) {
  return SettingOf(
      ClusterText({{"n1", Cards("A100-40GB", 4)}, {"n2", Cards("T4", 4)}, {"n3", Cards("T4", 4)}, {"n4", Cards("V100-16GB", 2)}}),
      "gpt2-774m", 64, 512, std::move(request));
}

TurnChoice Choice(Groups groups, std::vector<int> tp) {
  TurnChoice choice;
  choice.groups = std::move(groups);
  choice.tp = std::move(tp);
  return choice;
}

TurnChoice ByKind() { return Choice({{0, 1, 2, 3}, {4, 5, 6, 7, 8, 9, 10, 11}, {12, 13}}, {1, 2, 1}); }

bool Has(const std::vector<TurnChoice>& choices, const Groups& groups) {
  return std::any_of(choices.begin(), choices.end(), [&](const TurnChoice& choice) { return choice.groups == groups; });
}

bool Same(const TurnChoice& a, const TurnChoice& b) {
  return a.groups == b.groups && a.tp == b.tp && a.rounds == b.rounds && a.in_flight_factor == b.in_flight_factor &&
         a.schedule == b.schedule && a.zero_stage == b.zero_stage && a.offload.optimizer == b.offload.optimizer;
}

TEST(RegroupTest, EveryNeighbourIsADivisionAndAnotherOne) {
  const auto setting = Boxes();
  const TurnChoice partial = Choice({{0, 1}, {4, 5, 12}, {6, 7, 8, 9, 10, 11}}, {2, 1, 2});
  int planned = 0;
  for (const TurnChoice& choice : {ByKind(), partial, Choice({{3}}, {1})}) {
    const std::vector<TurnChoice> neighbours = Regrouped(*setting, choice);
    EXPECT_GT(neighbours.size(), 10u);
    for (const TurnChoice& neighbour : neighbours) {
      EXPECT_FALSE(Same(neighbour, choice));
      ASSERT_EQ(neighbour.tp.size(), neighbour.groups.size());
      ASSERT_FALSE(neighbour.groups.empty());
      std::set<int> seen;
      for (const std::vector<int>& group : neighbour.groups) {
        EXPECT_FALSE(group.empty());
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        for (const int device : group) EXPECT_TRUE(seen.insert(device).second && device < setting->num_devices());
      }
      const auto plan = PlanTurns(*setting, neighbour);
      if (!plan.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(plan.status()) || absl::IsFailedPrecondition(plan.status())) << plan.status();
        continue;
      }
      EXPECT_EQ(Validate(*plan, setting->workload.model), absl::OkStatus());
      ++planned;
    }
  }
  EXPECT_GT(planned, 60);
}

TEST(RegroupTest, JoinsCutsExchangesMovesLeavesOutAndTakesIn) {
  const auto setting = Boxes();
  const std::vector<TurnChoice> near = Regrouped(*setting, ByKind());
  EXPECT_TRUE(Has(near, {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {12, 13}})) << "joined";
  EXPECT_TRUE(Has(near, {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13}})) << "cut between nodes";
  EXPECT_TRUE(Has(near, {{0, 1}, {2, 3}, {4, 5, 6, 7, 8, 9, 10, 11}, {12, 13}})) << "cut inside a node";
  EXPECT_TRUE(Has(near, {{4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3}, {12, 13}})) << "exchanged";
  EXPECT_TRUE(Has(near, {{0, 1, 2, 3}, {6, 7, 8, 9, 10, 11}, {4, 5, 12, 13}})) << "a unit of two moved";
  EXPECT_TRUE(Has(near, {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13}})) << "a node moved";
  EXPECT_TRUE(Has(near, {{0, 1, 2, 3}, {4, 5, 6, 7, 8, 9, 10, 11}})) << "left out";
  EXPECT_FALSE(Has(near, {{0, 1, 2, 3}, {4, 5, 6, 7}, {12, 13}})) << "of two equal nodes the first goes";
  const std::vector<TurnChoice> more = Regrouped(*setting, Choice({{0, 1, 2, 3}, {4, 5, 6, 7}}, {1, 1}));
  EXPECT_TRUE(Has(more, {{0, 1, 2, 3}, {4, 5, 6, 7, 12, 13}})) << "taken in";
  EXPECT_TRUE(Has(more, {{0, 1, 2, 3}, {12, 13}, {4, 5, 6, 7}})) << "taken in as a group";
}

TEST(RegroupTest, PinnedGroupsStayAndOnlyNumbersChange) {
  PlanRequest request;
  request.pins = {{"stage0", "n1"}};
  request.zero_stage = 1;
  const auto setting = Boxes(request);
  const TurnChoice choice = ByKind();
  const std::vector<TurnChoice> near = Regrouped(*setting, choice);
  EXPECT_FALSE(near.empty());
  for (const TurnChoice& neighbour : near) {
    EXPECT_EQ(neighbour.groups, choice.groups);
    EXPECT_EQ(neighbour.zero_stage, choice.zero_stage) << "asked for";
  }
}

// So many groups have few neighbours each: devices go to near ones alone.
TEST(RegroupTest, NeighboursGrowInProportionToTheGroups) {
  const auto setting = PresetSetting("hexiscale-240", "llama2-70b", 256, 2048);
  const auto count = [&](int groups) {
    TurnChoice choice;
    for (int g = 0; g < groups; ++g) {
      std::vector<int>& group = choice.groups.emplace_back();
      for (int d = g * 240 / groups; d < (g + 1) * 240 / groups; ++d) group.push_back(d);
      choice.tp.push_back(2);
    }
    return Regrouped(*setting, choice).size();
  };
  EXPECT_LT(count(30), 3 * count(15));
  EXPECT_LT(count(30), 1000u);
}

}  // namespace
}  // namespace motley::planner
