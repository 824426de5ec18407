#include "common/session/assignment.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

// The second of three ranks; units 0 and 1 are of its stage and the first rank's, unit 2 is the third rank's.
RankAssignment SecondOfThree() {
  RankAssignment assignment;
  assignment.rank = 1;
  assignment.ownership.Add({{0, 0, 10}, {1, 10, 40}});
  assignment.ownership.Add({{0, 0, 40}, {1, 40, 60}});
  assignment.ownership.Add({{2, 0, 30}});
  assignment.program.microbatches = {{4, 7}, {3, 11}};
  return assignment;
}

TEST(AssignmentTest, BatchSizeIsThatOfTheProgram) {
  EXPECT_EQ(BatchSize(SecondOfThree()), 7);
  EXPECT_EQ(BatchSize({}), 0) << "profiling";
}

TEST(AssignmentTest, OwnedShareIsOfTheOwnStage) {
  RankAssignment assignment = SecondOfThree();
  EXPECT_DOUBLE_EQ(OwnedShare(assignment), 0.5);
  assignment.rank = 2;
  EXPECT_DOUBLE_EQ(OwnedShare(assignment), 1);
}

TEST(AssignmentTest, WhoOwnsNothingHasNoShare) {
  RankAssignment assignment = SecondOfThree();
  assignment.ownership = {};
  assignment.ownership.Add({{0, 0, 10}});
  EXPECT_EQ(OwnedShare(assignment), 0);
  EXPECT_EQ(OwnedShare({}), 0) << "profiling";
}

}  // namespace
}  // namespace motley
