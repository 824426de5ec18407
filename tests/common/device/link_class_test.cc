#include "common/device/link_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Four cards of a node: 0 and 1 by NVLink, 2 and 3 likewise, 1 and 2 past the host's memory.
std::vector<DeviceDescription> TwoBridges(const std::string& node) {
  std::vector<DeviceDescription> devices(4);
  for (int i = 0; i < 4; ++i) {
    devices[i].id = DeviceId(node + "/gpu" + std::to_string(i));
    devices[i].kind = DeviceKind::kCuda;
    devices[i].card.bus = "bus" + std::to_string(i);
    devices[i].card.nvlink_peers = {"bus" + std::to_string(i ^ 1)};
    devices[i].card.p2p_peers = devices[i].card.nvlink_peers;
  }
  devices[1].card.p2p_peers.push_back("bus2");
  devices[2].card.p2p_peers.push_back("bus1");
  return devices;
}

std::vector<DeviceDescription> Cpus(const std::string& node, int count) {
  std::vector<DeviceDescription> devices(count);
  for (int i = 0; i < count; ++i) devices[i].id = DeviceId(node + "/cpu" + std::to_string(i));
  return devices;
}

TEST(LinkClass, IsWhatBothSay) {
  std::vector<DeviceDescription> cards = TwoBridges("n1");
  EXPECT_EQ(ClassOfLink(cards[0], cards[1]), LinkClass::kNvLink);
  EXPECT_EQ(ClassOfLink(cards[1], cards[2]), LinkClass::kP2p);
  EXPECT_EQ(ClassOfLink(cards[0], cards[3]), LinkClass::kHost);
  EXPECT_EQ(ClassOfLink(cards[0], TwoBridges("n2")[1]), LinkClass::kNetwork) << "bus addresses are of a node";
  EXPECT_EQ(ClassOfLink(Cpus("n1", 1)[0], cards[0]), LinkClass::kHost);
  cards[2].card.p2p_peers.clear();
  EXPECT_EQ(ClassOfLink(cards[1], cards[2]), LinkClass::kHost);
  EXPECT_EQ(LinkClassName(LinkClass::kP2p), "PCIe P2P");
}

TEST(LinkClass, TwoPairsStandForEachClassOfANode) {
  // By NVLink 0-1 and 2-3, past the host's memory 1-2, through it 0-2 and 1-3 (0-3 shares a rank with both).
  EXPECT_THAT(RepresentativePairs(TwoBridges("n1")), ElementsAre(Pair(0, 1), Pair(0, 2), Pair(1, 2), Pair(1, 3), Pair(2, 3)));
  std::vector<DeviceDescription> two = TwoBridges("n1");
  const std::vector<DeviceDescription> cpus = Cpus("n2", 3);
  two.insert(two.end(), cpus.begin(), cpus.end());
  EXPECT_THAT(RepresentativePairs(two),
              ElementsAre(Pair(0, 1), Pair(0, 2), Pair(1, 2), Pair(1, 3), Pair(2, 3), Pair(4, 5), Pair(4, 6)));
}

TEST(LinkClass, WhereNodesHaveOneClassNobodyNeedsToBeChosen) {
  EXPECT_THAT(RepresentativePairs(Cpus("n1", 4)), IsEmpty());
  std::vector<DeviceDescription> alike = TwoBridges("n1");
  alike.resize(2);
  EXPECT_THAT(RepresentativePairs(alike), IsEmpty());
  EXPECT_THAT(RepresentativePairs({}), IsEmpty());
}

}  // namespace
}  // namespace motley
