#include "planner/search/tied_ends.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "planner/costs/workload.h"
#include "tests/planner/offline_fixture.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

constexpr const char* kLab = R"(name = "lab"
[defaults]
nic_gbit_per_second = 10
[[node]]
name = "a"
gpus = [{card = "A6000", count = 2}]
[[node]]
name = "b"
gpus = [{card = "L4", count = 1}]
)";

Workload Model(bool tied) {
  Workload workload = SmallWorkload();
  workload.model.tie_embeddings = tied;
  return workload;
}

bool OneNode(const Setting& setting, const TurnChoice& choice) {
  std::set<int> nodes;
  for (const int d : choice.groups.front()) nodes.insert(setting.cluster.devices[d].node);
  for (const int d : choice.groups.back()) {
    if (nodes.contains(setting.cluster.devices[d].node)) return true;
  }
  return false;
}

// 0 and 1 are node a's, 2 is node b's.
TEST(TiedEnds, GroupsOfOneNodeStandAtTheEnds) {
  const auto setting = MakeSetting(Model(true), {}, kLab);
  const std::vector<TurnChoice> found = WithEndsTogether(*setting, {{{0}, {1}, {2}}, {1, 1, 1}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].groups, (std::vector<std::vector<int>>{{0}, {2}, {1}}));
  EXPECT_EQ(found[1].groups, (std::vector<std::vector<int>>{{1}, {2}, {0}}));
}

TEST(TiedEnds, AGroupIsCutAndHasBothEnds) {
  const auto setting = MakeSetting(Model(true), {}, kLab);
  const std::vector<TurnChoice> found = WithEndsTogether(*setting, {{{0, 1}, {2}}, {2, 1}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].groups, (std::vector<std::vector<int>>{{0}, {2}, {1}}));
  EXPECT_EQ(found[0].tp, (std::vector<int>{1, 1, 1})) << "half of the pair is a single card";
  EXPECT_TRUE(OneNode(*setting, found[0]));
}

TEST(TiedEnds, AreNobodysConcernElse) {
  const TurnChoice choice{{{0, 1}, {2}}, {1, 1}};
  EXPECT_TRUE(WithEndsTogether(*MakeSetting(Model(false), {}, kLab), choice).empty()) << "two tables";
  EXPECT_TRUE(WithEndsTogether(*MakeSetting(Model(true), {.pins = {{"stage0", "b"}}}, kLab), choice).empty());
  EXPECT_TRUE(WithEndsTogether(*MakeSetting(Model(true), {}, kLab), {{{0, 1, 2}}, {1}}).empty()) << "one stage";
}

}  // namespace
}  // namespace motley::planner
