#include "planner/live/half_units.h"

#include <gtest/gtest.h>

namespace motley::planner {
namespace {

DeviceDescription Card(const std::string& id, const std::string& name, int capability) {
  DeviceDescription device;
  device.id = DeviceId(id);
  device.card.name = name;
  device.card.compute_capability = capability;
  return device;
}

TEST(SlowInHalf, NamesCardsThatGainNothing) {
  const std::vector<DeviceDescription> devices = {Card("a/gpu0", "Tesla P40", 61), Card("b/gpu0", "Tesla P100", 60),
                                                  Card("c/gpu0", "Tesla T4", 75), Card("d/gpu0", "L4", 89),
                                                  Card("e/gpu0", "", 0)};
  EXPECT_EQ(SlowInHalf(devices, DType::kFloat16), "a/gpu0 (Tesla P40) has no fast float16: it saves memory there and no time");
  EXPECT_EQ(
      SlowInHalf(devices, DType::kBFloat16),
      "a/gpu0 (Tesla P40), b/gpu0 (Tesla P100), c/gpu0 (Tesla T4) have no fast bfloat16: it saves memory there and no time");
  EXPECT_EQ(SlowInHalf(devices, DType::kFloat32), "");
  EXPECT_EQ(SlowInHalf({devices[3], devices[4]}, DType::kBFloat16), "");
}

}  // namespace
}  // namespace motley::planner
