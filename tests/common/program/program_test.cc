#include "common/program/program.h"

#include <gtest/gtest.h>

#include "common/program/program_order.h"

namespace motley {
namespace {

TEST(ProgramTest, CollectivesAndOnlyTheyRunOnTheCollectiveLane) {
  for (const Operation& op : {Operation(Gather{}), Operation(ReduceScatter{}), Operation(ReduceScalars{})}) {
    EXPECT_EQ(LaneOf(op), Lane::kCollective) << OperationName(op);
  }
  for (const Operation& op : {Operation(Release{}), Operation(Forward{}), Operation(Recompute{}), Operation(Backward{}),
                              Operation(ZeroGrad{}), Operation(OptimizerStep{})}) {
    EXPECT_EQ(LaneOf(op), Lane::kCompute) << OperationName(op);
  }
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
