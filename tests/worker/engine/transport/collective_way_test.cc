#include "worker/engine/transport/collective_way.h"

#include <gtest/gtest.h>

namespace motley::engine {
namespace {

constexpr int64_t kFloat = 4;

CollectiveWay WayOf(const Owners& owners, const NcclCosts& costs = {}) { return PlanCollective(owners, kFloat, costs).way; }

TEST(CollectiveWay, NothingIsOwned) {
  EXPECT_EQ(WayOf({{}, {}}), CollectiveWay::kNothing);
  EXPECT_EQ(WayOf({{{5, 5}}, {}}), CollectiveWay::kNothing);
}

TEST(CollectiveWay, EvenPiecesInOrderNeedNoRoom) {
  const CollectivePlan plan = PlanCollective({{{10, 20}}, {{20, 30}}, {{30, 40}}}, kFloat, {});
  EXPECT_EQ(plan.way, CollectiveWay::kEven);
  EXPECT_EQ(plan.first, 10);
  EXPECT_EQ(plan.slot_elements, 10);
  // Out of order, with a hole, or in two pieces: not in place.
  EXPECT_NE(WayOf({{{20, 30}}, {{10, 20}}}), CollectiveWay::kEven);
  EXPECT_NE(WayOf({{{0, 10}}, {{11, 21}}}), CollectiveWay::kEven);
  EXPECT_NE(WayOf({{{0, 5}, {5, 10}}, {{10, 20}}}), CollectiveWay::kEven);
}

TEST(CollectiveWay, ManySmallRangesArePaddedFewLargeOnesAreGrouped) {
  // 1,000 ranges by turns: as many calls cost more than copies.
  Owners many(4);
  for (int64_t i = 0; i < 1000; ++i) many[i % 4].push_back({i * 10, i * 10 + 10});
  const CollectivePlan plan = PlanCollective(many, kFloat, {});
  EXPECT_EQ(plan.way, CollectiveWay::kPadded);
  EXPECT_EQ(plan.slot_elements, 2500);
  // Four ranges of 40 MB, a fifth more for one: padding sends more than three calls cost.
  EXPECT_EQ(WayOf(OwnersOf({0, 12'000'000, 22'000'000, 32'000'000, 42'000'000})), CollectiveWay::kGrouped);
}

TEST(CollectiveWay, NoMoreThanAQuarterIsPadding) {
  const NcclCosts dear_calls{.seconds_per_call = 1};
  EXPECT_EQ(WayOf(OwnersOf({0, 125, 200}), dear_calls), CollectiveWay::kPadded);   // 250 for 200
  EXPECT_EQ(WayOf(OwnersOf({0, 126, 200}), dear_calls), CollectiveWay::kGrouped);  // 252
  EXPECT_EQ(WayOf(OwnersOf({0, 200, 200}), dear_calls), CollectiveWay::kGrouped);  // one owner of all
}

TEST(CollectiveWay, CostsDecide) {
  const Owners owners = OwnersOf({0, 110, 200});
  EXPECT_EQ(WayOf(owners, {.seconds_per_call = 1e-3}), CollectiveWay::kPadded);
  EXPECT_EQ(WayOf(owners, {.seconds_per_copy = 1e-3}), CollectiveWay::kGrouped);
}

}  // namespace
}  // namespace motley::engine
