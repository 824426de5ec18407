#include "common/program/program.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>

#include "common/program/program_order.h"

namespace motley {
namespace {

TEST(ProgramTest, OnlyWhatNeedsOtherRanksOrTheHostRunsOutsideTheComputeLane) {
  const std::map<std::string_view, Lane> lanes = {
      {"gather", Lane::kCollective},
      {"reduce_scatter", Lane::kCollective},
      {"reduce_scalars", Lane::kCollective},
      {"send_activation", Lane::kSend},
      {"send_gradient", Lane::kSend},
      {"receive_activation", Lane::kReceive},
      {"receive_gradient", Lane::kReceive},
      {"broadcast", Lane::kCollective},
      {"all_reduce", Lane::kCollective},
      {"all_reduce_activation", Lane::kCollective},
      {"broadcast_activation", Lane::kCollective},
      {"offload_activation", Lane::kCopy},
      {"prefetch_activation", Lane::kCopy},
      {"prefetch_parameters", Lane::kCopy},
      {"offload_gradients", Lane::kCopy},
      {"prefetch_optimizer", Lane::kCopy},
      {"offload_optimizer", Lane::kCopy},
  };
  for (const Operation& op : kEveryOperation) {
    const auto lane = lanes.find(OperationName(op));
    EXPECT_EQ(LaneOf(op), lane == lanes.end() ? Lane::kCompute : lane->second) << OperationName(op);
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

TEST(ProgramOrderTest, SendsAndReceivesAreLanesOfTheirOwn) {
  // Two receives, a forward that waits for the second, its send, and a receive that waits for the send.
  const ProgramOrder order(OfOperations({{ReceiveActivation{}, {}},
                                         {ReceiveActivation{}, {}},
                                         {Forward{}, {1}},
                                         {SendActivation{}, {2}},
                                         {ReceiveGradient{}, {}},
                                         {ReceiveGradient{}, {3}}}));
  EXPECT_TRUE(order.Before(0, 2));
  EXPECT_TRUE(order.Before(0, 3));
  EXPECT_FALSE(order.Before(2, 4));
  EXPECT_FALSE(order.Before(3, 4));
  EXPECT_TRUE(order.Before(2, 5));
}

TEST(ProgramOrderTest, NothingIsBeforeItself) {
  const ProgramOrder order(OfOperations({{Gather{}, {}}, {Release{}, {0}}}));
  EXPECT_FALSE(order.Before(0, 0));
  EXPECT_FALSE(order.Before(1, 1));
}

}  // namespace
}  // namespace motley
