#include "worker/engine/model/host_areas.h"

#include <gtest/gtest.h>

#include <array>

#include "common/program/host_slots.h"

namespace motley::engine {
namespace {

TEST(HostAreasTest, UnitsLieOneBehindTheOtherAndRanksThatOwnNothingHaveNothing) {
  RankAssignment assignment;
  assignment.rank = 1;
  assignment.program.offloads = {.parameters = true, .gradients = true, .optimizer = true};
  assignment.ownership.Add({{0, 0, 10}, {1, 10, 15}, {0, 15, 20}, {1, 20, 26}});  // two ranges: 11 elements
  assignment.ownership.Add({{0, 0, 100}});
  assignment.ownership.Add({{1, 0, 16}});
  HostAreas areas(assignment, Precision{.master = DType::kFloat32, .compute = DType::kBFloat16});
  EXPECT_EQ(areas.LayoutOf(0).total(), 11 * (4 * 4 + 2));
  EXPECT_EQ(areas.LayoutOf(0).CastAt(), 11 * 16);
  EXPECT_EQ(areas.LayoutOf(1).total(), 0);
  EXPECT_EQ(areas.LayoutOf(2).total(), 16 * 18);
  std::array<char, 1024> block{};
  ASSERT_LE(areas.bytes(), static_cast<int64_t>(block.size()));
  areas.Place(block.data());
  EXPECT_EQ(areas.Of(0), block.data());
  EXPECT_EQ((areas.Of(2) - block.data()) % kHostSlotAlignment, 0);
  EXPECT_GE(areas.Of(2), areas.Of(0) + areas.LayoutOf(0).total());
  EXPECT_LE(areas.Of(2) + areas.LayoutOf(2).total(), block.data() + areas.bytes());
}

TEST(HostAreasTest, NothingWaitsWhereNothingIsOffloaded) {
  RankAssignment assignment;
  assignment.program.offloads = {.activations = true};
  assignment.ownership.Add({{0, 0, 10}});
  const HostAreas areas(assignment, Precision{.master = DType::kFloat32, .compute = DType::kBFloat16});
  EXPECT_EQ(areas.bytes(), 0);
  EXPECT_EQ(areas.LayoutOf(0).total(), 0);
}

}  // namespace
}  // namespace motley::engine
