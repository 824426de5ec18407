#include "planner/simulator/step_graph.h"

#include <limits>

#include "gtest/gtest.h"

namespace motley::planner {
namespace {

TEST(StepGraphTest, PicosecondsAreRoundedAndSaturate) {
  EXPECT_EQ(ToPicoseconds(0), 0);
  EXPECT_EQ(ToPicoseconds(1.4e-12), 1);
  EXPECT_EQ(ToPicoseconds(1.6e-12), 2);
  EXPECT_EQ(ToPicoseconds(-1.6e-12), -2);
  EXPECT_EQ(ToPicoseconds(2.5), 2'500'000'000'000);
  EXPECT_EQ(ToPicoseconds(1e30), std::numeric_limits<Picoseconds>::max());
  EXPECT_EQ(ToPicoseconds(std::numeric_limits<double>::infinity()), std::numeric_limits<Picoseconds>::max());
  EXPECT_EQ(ToPicoseconds(-1e30), std::numeric_limits<Picoseconds>::min());
  EXPECT_EQ(ToPicoseconds(std::numeric_limits<double>::quiet_NaN()), 0);
}

TEST(StepGraphTest, EveryKindHasItsOwnName) {
  std::vector<std::string_view> names;
  for (size_t k = 0; k < kNumTaskKinds; ++k) names.push_back(TaskName(static_cast<TaskKind>(k)));
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_NE(names[i], "unknown");
    for (size_t j = 0; j < i; ++j) EXPECT_NE(names[i], names[j]);
  }
  EXPECT_TRUE(IsCompute(TaskKind::kBackwardWeight));
  EXPECT_TRUE(IsCompute(TaskKind::kOptimizer));
  EXPECT_FALSE(IsCompute(TaskKind::kGather));
  EXPECT_FALSE(IsCompute(TaskKind::kWait));
}

TEST(StepGraphTest, LabelsNameUnitAndMicrobatch) {
  Task task;
  EXPECT_EQ(TaskLabel(task), "forward");
  task.unit = 3;
  EXPECT_EQ(TaskLabel(task), "forward 3");
  task.microbatch = 1;
  EXPECT_EQ(TaskLabel(task), "forward 3.1");
  task.unit = -1;
  EXPECT_EQ(TaskLabel(task), "forward .1");
}

}  // namespace
}  // namespace motley::planner
