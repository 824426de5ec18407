#include "planner/simulator/fair_share.h"

#include <map>
#include <random>

#include "gtest/gtest.h"
#include "tests/planner/simulator/graph_fixture.h"

namespace motley::planner {
namespace {

using Loads = std::vector<LinkLoad>;

TEST(FairShareTest, OneFlowTakesItsNarrowestLink) {
  const std::vector<double> links = {10, 4};
  FairShare share(links);
  const Loads loads = {{0, 8}, {1, 8}};
  const int flow = share.Start(7, loads, 0);
  const auto changes = share.Share(0);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].name, 7);
  EXPECT_EQ(changes[0].end, 2 * kSecond);
  EXPECT_DOUBLE_EQ(share.Speed(flow), 4);
  EXPECT_TRUE(share.Share(kSecond).empty());
}

TEST(FairShareTest, AFlowEndsAtTheFirstPicosecondAfterItsLastByte) {
  const std::vector<double> links = {3};
  FairShare share(links);
  const Loads loads = {{0, 10}};
  share.Start(0, loads, 5);
  EXPECT_EQ(share.Share(5)[0].end, 5 + 3'333'333'333'334);
}

// Reference: Bertsekas, Gallager, section 6.5.2: a long flow over two links, each shared with a short one. The narrow link gives
// both of its flows half; what the long flow cannot use of the wide link is the other's.
TEST(FairShareTest, ThreeFlowsOnTwoLinks) {
  const std::vector<double> links = {10, 4};
  FairShare share(links);
  const Loads both = {{0, 100}, {1, 100}}, wide = {{0, 100}}, narrow = {{1, 100}};
  const int a = share.Start(0, both, 0), b = share.Start(1, wide, 0), c = share.Start(2, narrow, 0);
  share.Share(0);
  EXPECT_DOUBLE_EQ(share.Speed(a), 2);
  EXPECT_DOUBLE_EQ(share.Speed(c), 2);
  EXPECT_DOUBLE_EQ(share.Speed(b), 8);
  share.Finish(c);
  share.Share(kSecond);
  EXPECT_DOUBLE_EQ(share.Speed(a), 4);
  EXPECT_DOUBLE_EQ(share.Speed(b), 6);
}

TEST(FairShareTest, UnequalLoadsShareByTheHeaviest) {
  // The first flow moves 1 byte of link 1 for every 4 of link 0: at equal speeds s the link carries s + s / 4.
  const std::vector<double> links = {100, 10};
  FairShare share(links);
  const Loads first = {{0, 40}, {1, 10}}, second = {{1, 10}};
  const int a = share.Start(0, first, 0), b = share.Start(1, second, 0);
  share.Share(0);
  EXPECT_DOUBLE_EQ(share.Speed(a), 8);
  EXPECT_DOUBLE_EQ(share.Speed(b), 8);
}

TEST(FairShareTest, FlowsWithoutACommonLinkAreLeftAlone) {
  const std::vector<double> links = {10, 10, 10};
  FairShare share(links);
  const Loads left = {{0, 10}}, right = {{2, 10}}, joint = {{0, 10}, {1, 10}};
  share.Start(0, left, 0);
  share.Start(1, right, 0);
  EXPECT_EQ(share.Share(0).size(), 2u);
  share.Start(2, joint, 0);
  std::vector<int32_t> changed;
  for (const auto& change : share.Share(0)) changed.push_back(change.name);
  std::sort(changed.begin(), changed.end());
  EXPECT_EQ(changed, (std::vector<int32_t>{0, 2}));
}

// Whatever comes and goes: no link carries more than it can, every flow moves exactly its bytes, and no flow could be faster
// without a slower or equal one losing (it uses a full link on which it is among the fastest, which is what max-min means).
TEST(FairShareTest, RandomTrafficIsFeasibleFairAndConservesBytes) {
  std::mt19937_64 random(5);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 200; ++round) {
    std::vector<double> links;
    for (int l = 2 + draw(5); l > 0; --l) links.push_back(1 + draw(20));
    std::vector<Loads> loads(40);
    for (Loads& l : loads) {
      for (size_t link = 0; link < links.size(); ++link) {
        if (draw(3) == 0) l.push_back({static_cast<int>(link), 1.0 + draw(30)});
      }
      if (l.empty()) l.push_back({0, 5});
    }
    FairShare share(links);
    struct Flow {
      int slot;
      Picoseconds end;
      double moved = 0;
    };
    std::map<int, Flow> flows;
    Picoseconds now = 0;
    size_t next = 0;
    while (next < loads.size() || !flows.empty()) {
      for (int k = flows.empty() ? 1 + draw(4) : draw(3); k > 0 && next < loads.size(); --k, ++next) {
        flows[static_cast<int>(next)] = {share.Start(static_cast<int32_t>(next), loads[next], now), 0};
      }
      for (const auto& change : share.Share(now)) flows.at(change.name).end = change.end;
      std::vector<double> used(links.size(), 0);
      for (const auto& [name, flow] : flows) {
        double heaviest = 0;
        for (const LinkLoad& l : loads[name]) heaviest = std::max(heaviest, l.bytes);
        for (const LinkLoad& l : loads[name]) {
          used[l.resource] += share.Speed(flow.slot) * l.bytes / heaviest;
        }
      }
      for (size_t l = 0; l < links.size(); ++l) ASSERT_LE(used[l], links[l] * (1 + 1e-9));
      for (const auto& [name, flow] : flows) {
        bool bound = false;
        for (const LinkLoad& mine : loads[name]) {
          const auto link = static_cast<size_t>(mine.resource);
          double fastest = 0;
          for (const auto& [other, f] : flows) {
            for (const LinkLoad& l : loads[other]) {
              if (l.resource == mine.resource) fastest = std::max(fastest, share.Speed(f.slot));
            }
          }
          bound |= used[link] > links[link] * (1 - 1e-9) && share.Speed(flow.slot) > fastest * (1 - 1e-9);
        }
        ASSERT_TRUE(bound) << "flow " << name << " could be faster";
      }
      Picoseconds until = std::numeric_limits<Picoseconds>::max();
      for (const auto& [name, flow] : flows) until = std::min(until, flow.end);
      for (auto& [name, flow] : flows) flow.moved += share.Speed(flow.slot) * ToSeconds(until - now);
      now = until;
      for (auto it = flows.begin(); it != flows.end();) {
        if (it->second.end != now) {
          ++it;
          continue;
        }
        double heaviest = 0;
        for (const LinkLoad& l : loads[it->first]) heaviest = std::max(heaviest, l.bytes);
        ASSERT_NEAR(it->second.moved, heaviest, 1e-9 * heaviest);
        share.Finish(it->second.slot);
        it = flows.erase(it);
      }
    }
  }
}

}  // namespace
}  // namespace motley::planner
