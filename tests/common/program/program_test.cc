#include "common/program/program.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "common/program/program_order.h"

namespace motley {
namespace {

TEST(ProgramTest, CollectivesAndOnlyTheyRunOnTheCollectiveLane) {
  const std::set<std::string_view> collectives = {"gather", "reduce_scatter", "reduce_scalars"};
  for (const Operation& op : kEveryOperation) {
    EXPECT_EQ(LaneOf(op) == Lane::kCollective, collectives.contains(OperationName(op))) << OperationName(op);
  }
}

TEST(ProgramTest, EveryOperationIsThereOnceAndHasItsOwnName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kEveryOperation.size(); ++i) {
    EXPECT_EQ(kEveryOperation[i].index(), i);
    EXPECT_TRUE(names.insert(OperationName(kEveryOperation[i])).second) << OperationName(kEveryOperation[i]);
  }
  EXPECT_EQ(names.size(), std::variant_size_v<Operation>);
}

Program OfOperations(std::vector<Instruction> instructions) {
  Program program;
  program.instructions = std::move(instructions);
  return program;
}

TEST(ProgramOrderTest, LanesAreInOrderAndIndependentOfEachOther) {
  const ProgramOrder order(OfOperations({{Gather{}, {}}, {Release{}, {}}, {Gather{}, {}}, {Release{}, {}}}));
  EXPECT_TRUE(order.Before(0, 2));
  EXPECT_TRUE(order.Before(1, 3));
  EXPECT_FALSE(order.Before(0, 1));
  EXPECT_FALSE(order.Before(1, 2));
  EXPECT_FALSE(order.Before(0, 3));
}

TEST(ProgramOrderTest, DependenciesAreTransitiveOverLanes) {
  // Collective 0; compute 1 waits for it; compute 2; collective 3 waits for 2.
  const ProgramOrder order(OfOperations({{Gather{}, {}}, {Release{}, {0}}, {Release{}, {}}, {Gather{}, {2}}, {Release{}, {3}}}));
  EXPECT_TRUE(order.Before(0, 2));
  EXPECT_TRUE(order.Before(1, 3));
  EXPECT_TRUE(order.Before(0, 4));
  EXPECT_FALSE(order.Before(3, 2));
}

TEST(ProgramOrderTest, NothingIsBeforeItself) {
  const ProgramOrder order(OfOperations({{Gather{}, {}}, {Release{}, {0}}}));
  EXPECT_FALSE(order.Before(0, 0));
  EXPECT_FALSE(order.Before(1, 1));
}

}  // namespace
}  // namespace motley
