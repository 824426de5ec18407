#include "planner/groups/groupings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

void ExpectPartition(const Setting& setting, const Grouping& grouping) {
  std::set<int> devices;
  size_t count = 0;
  for (const std::vector<int>& group : grouping.groups) {
    EXPECT_FALSE(group.empty());
    EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
    devices.insert(group.begin(), group.end());
    count += group.size();
  }
  EXPECT_EQ(count, devices.size());
  EXPECT_EQ(count, static_cast<size_t>(setting.num_devices()));
}

bool Has(const std::vector<Grouping>& groupings, const std::vector<std::vector<int>>& groups) {
  return std::any_of(groupings.begin(), groupings.end(), [&](const Grouping& g) { return g.groups == groups; });
}

std::vector<int> Devices(int first, int count) {
  std::vector<int> run(static_cast<size_t>(count));
  std::iota(run.begin(), run.end(), first);
  return run;
}

TEST(Groupings, PartitionsWithoutDuplicatesCoarseFirstBounded) {
  for (const char* preset : {"cephalo-a", "zorse-a", "zorse-b", "zorse-c", "hexiscale-3"}) {
    const auto setting = PresetSetting(preset, "llama-7b", 128, 512);
    const std::vector<Grouping> groupings = CandidateGroupings(*setting);
    ASSERT_FALSE(groupings.empty());
    EXPECT_LE(groupings.size(), static_cast<size_t>(kMostGroupings));
    EXPECT_EQ(groupings[0].groups.size(), 1u);
    std::set<std::vector<std::vector<int>>> seen;
    size_t last = 1;
    for (const Grouping& grouping : groupings) {
      ExpectPartition(*setting, grouping);
      EXPECT_TRUE(seen.insert(grouping.groups).second);
      EXPECT_GE(grouping.groups.size(), last);
      EXPECT_LE(grouping.groups.size(), 32u);
      EXPECT_FALSE(grouping.from.empty());
      last = grouping.groups.size();
    }
  }
}

// Reference: Zorse section 5.2: on cluster B four groups by kind.
TEST(Groupings, KindsOfZorseB) {
  const auto setting = PresetSetting("zorse-b", "llama-7b", 128, 512);
  EXPECT_TRUE(Has(CandidateGroupings(*setting), {Devices(0, 8), Devices(8, 16), Devices(24, 16), Devices(40, 24)}));
}

TEST(Groupings, RegionsAndSingleNodes) {
  const auto two_regions = PresetSetting("zorse-c", "llama-7b", 128, 512);
  EXPECT_TRUE(Has(CandidateGroupings(*two_regions), {Devices(0, 64), Devices(64, 64)}));
  const auto one_node = SettingOf(ClusterText({{"n1", Cards("T4", 4)}}), "gpt2-124m", 16, 512);
  EXPECT_TRUE(Has(CandidateGroupings(*one_node), {{0, 1}, {2, 3}}));
  EXPECT_TRUE(Has(CandidateGroupings(*one_node), {{0}, {1}, {2}, {3}}));
}

TEST(Groupings, EqualAnswersToEqualQuestions) {
  const auto a = PresetSetting("zorse-c", "llama-13b", 128, 512), b = PresetSetting("zorse-c", "llama-13b", 128, 512);
  const std::vector<Grouping> first = CandidateGroupings(*a), second = CandidateGroupings(*b);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].groups, second[i].groups);
}

TEST(Groupings, PinsMakeGroupsAndPlaces) {
  PlanRequest request;
  request.pins = {{"stage1", "n1"}};
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 2)}, {"n2", Cards("T4", 2)}}), "gpt2-124m", 16, 512, request);
  const std::vector<int> pinned = setting->pinned_stage;
  EXPECT_EQ(pinned, std::vector<int>({1, 1, -1, -1}));
  const Grouping split = WithPins({{{0, 2}, {1, 3}}, "test"}, pinned);
  EXPECT_EQ(split.groups, (std::vector<std::vector<int>>{{0, 1}, {2}, {3}}));
  const Grouping kept = WithPins({{{0, 1, 2}, {3}}, "test"}, pinned);
  EXPECT_EQ(kept.groups, (std::vector<std::vector<int>>{{0, 1, 2}, {3}}));
  EXPECT_EQ(OrderWithPins(kept, pinned, {0, 1}), std::vector<int>({1, 0}));
  EXPECT_TRUE(OrderWithPins({{{0, 1, 2, 3}}, "test"}, pinned, {0}).empty());
}

}  // namespace
}  // namespace motley::planner
