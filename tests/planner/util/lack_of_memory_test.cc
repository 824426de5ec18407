#include "planner/util/lack_of_memory.h"

#include <gtest/gtest.h>

namespace motley::planner {
namespace {

TEST(LackOfMemoryTest, AWholePlansLackIsMoreTellingThanOneDevices) {
  const absl::Status whole = LackOfMemory(200, "whole"), less = LackOfMemory(100, "less");
  const absl::Status one = LackOfMemory(1, "one", LackIn::kOneDevice), two = LackOfMemory(2, "two", LackIn::kOneDevice);
  const absl::Status other = absl::ResourceExhaustedError("other");
  EXPECT_EQ(LackingBytes(one), 1);
  EXPECT_EQ(LackingBytes(other), std::nullopt);
  EXPECT_TRUE(IsNearerMiss(less, whole));
  EXPECT_FALSE(IsNearerMiss(whole, less));
  EXPECT_TRUE(IsNearerMiss(whole, one)) << "what it would lack elsewhere nobody looked at";
  EXPECT_FALSE(IsNearerMiss(one, whole));
  EXPECT_TRUE(IsNearerMiss(one, two));
  EXPECT_TRUE(IsNearerMiss(two, other));
  EXPECT_FALSE(IsNearerMiss(other, two));
}

}  // namespace
}  // namespace motley::planner
