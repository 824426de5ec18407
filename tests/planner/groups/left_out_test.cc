#include "planner/groups/left_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

using Groups = std::vector<std::vector<int>>;

std::vector<Groups> GroupsOf(const std::vector<Grouping>& groupings) {
  std::vector<Groups> groups;
  for (const Grouping& grouping : groupings) groups.push_back(grouping.groups);
  return groups;
}

// Two A100, three T4, a P40, which is slowest at fp16.
const std::vector<NodeText> kThreeKinds = {{"n1", Cards("A100-40GB", 2)}, {"n2", Cards("T4", 3)}, {"n3", Cards("P40", 1)}};
const std::vector<Grouping> kWholeAndByNode = {{{{0, 1, 2, 3, 4, 5}}, "whole"}, {{{0, 1}, {2, 3, 4}, {5}}, "by node"}};

TEST(LeftOutTest, SlowestFirstWithoutDuplicates) {
  const auto setting = SettingOf(ClusterText(kThreeKinds), "gpt2-124m", 16, 512);
  const std::vector<Grouping> all = WithSlowLeftOut(*setting, kWholeAndByNode);
  // Both without two kinds are the A100 alone; nodes are kinds here.
  EXPECT_THAT(GroupsOf(all), ElementsAre(Groups{{0, 1, 2, 3, 4, 5}}, Groups{{0, 1}, {2, 3, 4}, {5}}, Groups{{0, 1, 2, 3, 4}},
                                         Groups{{0, 1}, {2, 3, 4}}, Groups{{0, 1}}));
  EXPECT_EQ(all[0].from, "whole");
  EXPECT_EQ(all[2].from, "whole without the slowest 1 kinds");
}

TEST(LeftOutTest, PinnedDevicesStay) {
  PlanRequest request;
  request.pins = {{"stage2", "n3"}};
  const auto setting = SettingOf(ClusterText(kThreeKinds), "gpt2-124m", 16, 512, request);
  EXPECT_THAT(GroupsOf(WithSlowLeftOut(*setting, kWholeAndByNode)),
              ElementsAre(Groups{{0, 1, 2, 3, 4, 5}}, Groups{{0, 1}, {2, 3, 4}, {5}}, Groups{{0, 1, 5}}, Groups{{0, 1}, {5}}));
}

TEST(LeftOutTest, NodesCountByTheirDevicesTogether) {
  // A single T4, sixteen of them, an A100: the node of sixteen is the fastest.
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 1)}, {"n2", Cards("T4", 16)}, {"n3", Cards("A100-40GB", 1)}}),
                                 "gpt2-124m", 64, 512);
  std::vector<int> whole(18), sixteen(16), without_first(17);
  for (int d = 0; d < 18; ++d) whole[d] = d;
  std::copy(whole.begin() + 1, whole.begin() + 17, sixteen.begin());
  std::copy(whole.begin() + 1, whole.end(), without_first.begin());
  EXPECT_THAT(GroupsOf(WithSlowLeftOut(*setting, {{{whole}, "whole"}})),
              ElementsAre(Groups{whole}, Groups{{17}}, Groups{without_first}, Groups{sixteen}));
}

TEST(LeftOutTest, FourKindsAtMost) {
  const auto setting =
      SettingOf(ClusterText({{"n1", "\"A100-40GB\", \"V100-16GB\", \"A10G\", \"T4\", \"L4\", \"P40\""}}), "gpt2-124m", 16, 512);
  std::vector<size_t> sizes;
  for (const Groups& groups : GroupsOf(WithSlowLeftOut(*setting, {{{{0, 1, 2, 3, 4, 5}}, "whole"}})))
    sizes.push_back(groups[0].size());
  EXPECT_THAT(sizes, ElementsAre(6, 5, 4, 3, 2));
}

TEST(LeftOutTest, OneKindOnOneNodeLeavesNothingOut) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 6)}}), "gpt2-124m", 16, 512);
  EXPECT_THAT(GroupsOf(WithSlowLeftOut(*setting, {{{{0, 1, 2, 3, 4, 5}}, "whole"}})), ElementsAre(Groups{{0, 1, 2, 3, 4, 5}}));
}

// Partitions of the parts of n things: Bell's numbers, B(n + 1), less the empty part.
TEST(LeftOutTest, AFewDevicesAreDividedInEveryWay) {
  const std::vector<size_t> partitions = {1, 4, 14, 51, 202};
  for (int count = 1; count <= 5; ++count) {
    const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", count)}}), "gpt2-124m", 16, 512);
    const std::vector<Grouping> all = WithSlowLeftOut(*setting, CandidateGroupings(*setting));
    EXPECT_EQ(all.size(), partitions[static_cast<size_t>(count) - 1]);
    std::set<Groups> seen;
    for (const Grouping& grouping : all) EXPECT_TRUE(seen.insert(grouping.groups).second);
  }
  PlanRequest request;
  request.pins = {{"stage0", "n1/gpu0"}};
  const auto pinned = SettingOf(ClusterText({{"n1", Cards("T4", 3)}}), "gpt2-124m", 16, 512, request);
  const std::vector<Grouping> all = WithSlowLeftOut(*pinned, CandidateGroupings(*pinned));
  EXPECT_EQ(all.size(), 10u) << "with or without either of the others: 1 + 2 + 2 + 5";
  for (const Grouping& grouping : all) EXPECT_EQ(grouping.groups[0][0], 0);
}

TEST(LeftOutTest, OnPresets) {
  for (const char* preset : {"cephalo-a", "zorse-b", "hexiscale-3"}) {
    const auto setting = PresetSetting(preset, "llama-7b", 128, 512);
    const std::vector<Grouping> before = CandidateGroupings(*setting), after = WithSlowLeftOut(*setting, before);
    ASSERT_GT(after.size(), before.size()) << preset;
    EXPECT_THAT(GroupsOf({after.begin(), after.begin() + static_cast<std::ptrdiff_t>(before.size())}),
                ElementsAreArray(GroupsOf(before)));
    std::set<Groups> seen;
    for (const Grouping& grouping : after) {
      EXPECT_TRUE(seen.insert(grouping.groups).second) << grouping.from;
      std::set<int> devices;
      for (const std::vector<int>& group : grouping.groups) {
        EXPECT_FALSE(group.empty());
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        for (const int device : group) EXPECT_TRUE(devices.insert(device).second);
      }
      EXPECT_FALSE(devices.empty());
    }
  }
}

}  // namespace
}  // namespace motley::planner
