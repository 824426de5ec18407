#include "planner/groups/alike_devices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/offline_fixture.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

const std::string kNodes =
    "name = \"lab\"\n[defaults]\nnic_gbit_per_second = 10\n[[node]]\nname = \"a\"\ngpus = [{card = \"L4\", count = 2}, "
    "\"A6000\"]\n"
    "[[node]]\nname = \"b\"\ngpus = [{card = \"L4\", count = 2}]\n";

TEST(AlikeDevices, AreOfOneCardAndNode) {
  EXPECT_EQ(FirstAlike(*MakeSetting(SmallWorkload(), {}, kNodes)), (std::vector<int>{0, 0, 2, 3, 3}));
}

TEST(AlikeDevices, NotWhereSomebodyNamedThem) {
  EXPECT_EQ(FirstAlike(*MakeSetting(SmallWorkload(), {.pins = {{"stage0", "a/gpu1"}}}, kNodes)),
            (std::vector<int>{0, 1, 2, 3, 3}));
}

TEST(AlikeDevices, MakeGroupingsLookTheSame) {
  const std::vector<int> alike = FirstAlike(*MakeSetting(SmallWorkload(), {}, kNodes));
  EXPECT_EQ(LookOf(alike, {{1, 2}, {0}}), LookOf(alike, {{0, 2}, {1}}));
  EXPECT_NE(LookOf(alike, {{1, 2}, {0}}), LookOf(alike, {{0}, {1, 2}})) << "stages have an order";
  EXPECT_NE(LookOf(alike, {{0}, {3}}), LookOf(alike, {{0}, {1}})) << "other nodes";
}

}  // namespace
}  // namespace motley::planner
