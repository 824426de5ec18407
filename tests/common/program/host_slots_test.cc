#include "common/program/host_slots.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/common/program/wide_program_texts.h"

namespace motley {
namespace {

Program ProgramOf(std::vector<Operation> operations) {
  Program program;
  program.microbatches = {{2, 0}, {3, 2}, {1, 5}};
  for (const Operation& op : operations) program.instructions.push_back({op, {}});
  return program;
}

// What left last comes back first here, and what leaves then takes its place.
TEST(HostSlotsTest, ASlotIsTakenAgainWhenItsInputHasComeBack) {
  const HostSlots slots =
      AssignHostSlots(ProgramOf({OffloadActivation{1, 0}, OffloadActivation{1, 1}, Forward{}, PrefetchActivation{1, 1, 0},
                                 OffloadActivation{1, 2}, PrefetchActivation{1, 0, 1}, PrefetchActivation{1, 2, 0}}));
  EXPECT_EQ(slots.of, (std::vector<int32_t>{0, 1, -1, 1, 1, 0, 1}));
  EXPECT_EQ(slots.count, 2);
  EXPECT_EQ(slots.most_samples, 3);
  EXPECT_EQ(slots.SlotBytes(21), 64);
  EXPECT_EQ(slots.SlotBytes(22), 128) << "66 bytes, in whole cache lines";
  EXPECT_EQ(slots.BlockBytes(22), 256);
}

TEST(HostSlotsTest, ACopyOfSeveralInputsTakesASlotForEach) {
  const auto program = ParseProgram(kSlots);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(AssignHostSlots(*program).count, 4) << "two units, two microbatches";
}

TEST(HostSlotsTest, NothingWaitsWhereNothingLeaves) {
  const HostSlots slots = AssignHostSlots(ProgramOf({Forward{}, Backward{}}));
  EXPECT_EQ(slots.count, 0);
  EXPECT_EQ(slots.most_samples, 0);
  EXPECT_EQ(slots.BlockBytes(22), 0);
}

}  // namespace
}  // namespace motley
