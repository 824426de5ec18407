#include "planner/graph/group_flows.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

constexpr double kBytes = 1000;

// Bytes that leave each of the node's five devices in a collective of a stage of two units with these tensor-parallel shares.
std::map<std::string, double> BytesOut(const std::vector<std::vector<double>>& units, Collective collective,
                                       const std::vector<double>& shards = {}) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4", "T4", "T4"}}), WorkOf(MediumModel(4, false), 4));
  StagePlan stage = StageOf(*setting, 0, std::vector<std::vector<int64_t>>(5), {{0, 3}}, 1);
  std::vector<UnitPlan> wide;
  size_t next = 0;
  for (const std::vector<double>& shares : units) {
    UnitPlan& unit = wide.emplace_back();
    unit.microbatches = {2};
    for (const double share : shares) {
      unit.ranks.push_back(stage.units[next].ranks[0]);
      unit.ranks.back().tp_share = share;
      if (!shards.empty()) unit.ranks.back().shard_ratio = shards[next];
      ++next;
    }
  }
  stage.units = wide;
  const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{{stage}}});
  const auto view = ViewOf(*setting, plan);
  EXPECT_TRUE(view.ok()) << view.status();
  const Flow flow = GroupFlow(setting->links, *view, view->stages[0], collective, kBytes);
  std::map<std::string, double> out;
  for (const LinkLoad& load : flow.loads) {
    const std::string& name = setting->links.Name(load.resource);
    if (name.ends_with("out")) out[name.substr(0, name.find(' '))] += load.bytes;
  }
  return out;
}

// By what a ring of two carries: in an all-reduce each sends all bytes once.
TEST(GroupFlowsTest, ASingleRankBesideAPairIsInTwoRings) {
  const auto out = BytesOut({{1}, {0.5, 0.5}}, Collective::kAllReduce);
  EXPECT_DOUBLE_EQ(out.at("n0/gpu0"), kBytes);
  EXPECT_DOUBLE_EQ(out.at("n0/gpu1"), kBytes / 2);
  EXPECT_DOUBLE_EQ(out.at("n0/gpu2"), kBytes / 2);
}

TEST(GroupFlowsTest, PairsThatAreCutAlikeMeetRankByRank) {
  const auto out = BytesOut({{0.7, 0.3}, {0.7, 0.3}}, Collective::kAllReduce);
  EXPECT_NEAR(out.at("n0/gpu0"), 0.7 * kBytes, 1e-9);
  EXPECT_NEAR(out.at("n0/gpu1"), 0.3 * kBytes, 1e-9);
  EXPECT_NEAR(out.at("n0/gpu2"), 0.7 * kBytes, 1e-9);
  EXPECT_NEAR(out.at("n0/gpu3"), 0.3 * kBytes, 1e-9);
}

TEST(GroupFlowsTest, EveryoneSendsWhatItHoldsWhereverUnitsAreCut) {
  const auto out = BytesOut({{0.6, 0.4}, {0.5, 0.2, 0.3}}, Collective::kAllReduce);
  const double parts[] = {0.6, 0.4, 0.5, 0.2, 0.3};
  for (int r = 0; r < 5; ++r) EXPECT_NEAR(out.at("n0/gpu" + std::to_string(r)), parts[r] * kBytes, 1e-9) << r;
}

// Of two that meet, each receives what the other stores.
TEST(GroupFlowsTest, GathersGoByTheShardsOfEachSlice) {
  const auto out = BytesOut({{1}, {0.5, 0.5}}, Collective::kAllGather, {0.5, 0.5, 0});
  EXPECT_NEAR(out.at("n0/gpu0"), (1.0 / 3 + 1) * kBytes / 2, 1e-9) << "a third of one slice, all of the other";
  EXPECT_NEAR(out.at("n0/gpu1"), 2.0 / 3 * kBytes / 2, 1e-9);
  EXPECT_EQ(out.count("n0/gpu2") > 0 ? out.at("n0/gpu2") : 0, 0) << "owns nothing";
}

TEST(GroupFlowsTest, ARingOfPartsIsOfWhatThereIs) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, false), 4));
  const std::vector<int> devices = {0, 1};
  const auto same = [&](Collective collective, std::vector<double> parts, const std::vector<double>& shares) {
    const Flow ring = RingByParts(setting->links, collective, devices, kBytes, std::move(parts));
    const Flow expected = setting->links.Ring(collective, devices, kBytes, shares);
    ASSERT_EQ(ring.loads.size(), expected.loads.size());
    for (size_t l = 0; l < ring.loads.size(); ++l) EXPECT_DOUBLE_EQ(ring.loads[l].bytes, expected.loads[l].bytes) << l;
  };
  same(Collective::kAllGather, {3, 1}, {0.75, 0.25});
  same(Collective::kAllReduce, {3, 1}, {});
  same(Collective::kReduceScatter, {0, 0}, {});
}

TEST(GroupFlowsTest, SetsHaveABlockOnce) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4", "T4"}, {"T4", "T4", "T4"}}), WorkOf(MediumModel(4, false), 4));
  StagePlan wide = StageOf(*setting, 0, {{2}, {2}, {}, {}}, {{0, 1}}, 3), pair = StageOf(*setting, 4, {{2}, {2}}, {{2, 3}}, 1);
  for (size_t u : {0, 1}) {
    UnitPlan& unit = wide.units[u];
    unit.ranks.push_back(wide.units[u + 2].ranks[0]);
    for (RankPlan& rank : unit.ranks) rank.tp_share = 0.5;
  }
  wide.units.resize(2);
  const Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {{{wide, pair}}});
  const PlanView view = ViewOf(*setting, plan).value();
  const std::vector<int> stages = {0, 1};
  using Sets = std::vector<std::vector<int>>;
  EXPECT_EQ(SetsOf(view, stages, kNeverSharded), (Sets{{0, 2}, {1, 3}, {4}, {5}}));
  EXPECT_EQ(SetsOf(view, stages, 3), (Sets{{0, 2, 1, 3}, {4}, {5}})) << "the first stage's ranks keep shards";
  EXPECT_EQ(SetsOf(view, stages, 1), (Sets{{0, 2, 1, 3}, {4, 5}}));
}

}  // namespace
}  // namespace motley::planner
