#include "worker/engine/transport/link_rates.h"

#include <gtest/gtest.h>

namespace motley::engine {
namespace {

const std::vector<DeviceId> kDevices = {DeviceId("a/gpu0"), DeviceId("a/gpu1"), DeviceId("b/gpu0"), DeviceId("b/gpu1")};
const std::vector<LinkRates> kRates = {{100, 10}, {90, 10}, {80, 5}, {0, 5}};

TEST(LinkRates, APathIsAsFastAsTheSlowestLinkThatItCrosses) {
  EXPECT_EQ(SlowestOnPath(kDevices, kRates, 0, 1), 90);  // no NIC within a node
  EXPECT_EQ(SlowestOnPath(kDevices, kRates, 1, 2), 5);
  EXPECT_EQ(SlowestOnPath(kDevices, kRates, 2, 1), 5);
  EXPECT_EQ(SlowestOnPath(kDevices, kRates, 3, 2), 80);  // 0 is no limit
  EXPECT_EQ(SlowestOnPath(kDevices, {{}, {}, {}, {}}, 0, 3), 0);
}

TEST(LinkRates, ARingIsAsFastAsItsSlowestPath) {
  EXPECT_EQ(SlowestInRing(kDevices, kRates, {0, 1}), 90);
  EXPECT_EQ(SlowestInRing(kDevices, kRates, {1, 0}), 90);
  EXPECT_EQ(SlowestInRing(kDevices, kRates, {2, 3}), 80);
  EXPECT_EQ(SlowestInRing(kDevices, kRates, {0, 1, 2, 3}), 5);
  EXPECT_EQ(SlowestInRing(kDevices, kRates, {}), 0);
}

}  // namespace
}  // namespace motley::engine
