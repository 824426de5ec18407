#include "worker/daemon/kept_steps.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

engine::StepResult Step(int64_t number, size_t spans = 1) {
  engine::StepResult step;
  step.step = number;
  step.spans.resize(spans);
  return step;
}

TEST(KeptStepsTest, FindsTheNewestOnes) {
  KeptSteps kept;
  EXPECT_EQ(*kept.Find(1), nullptr);
  for (int64_t step = 1; step <= 20; ++step) kept.Add(Step(step));
  EXPECT_EQ((*kept.Find(20))->step, 20);
  EXPECT_EQ((*kept.Find(5))->step, 5);
  EXPECT_EQ(*kept.Find(21), nullptr);
  const auto gone = kept.Find(4);
  EXPECT_TRUE(absl::IsNotFound(gone.status()));
  EXPECT_THAT(gone.status().message(), HasSubstr("steps 5 to 20"));
}

TEST(KeptStepsTest, ALongProgramIsKeptForFewerSteps) {
  KeptSteps kept;
  for (int64_t step = 1; step <= 3; ++step) kept.Add(Step(step, KeptSteps::kMostSpans / 2));
  EXPECT_FALSE(kept.Find(1).ok());
  EXPECT_EQ((*kept.Find(2))->step, 2);
  kept.Add(Step(4, 2 * KeptSteps::kMostSpans));
  EXPECT_EQ((*kept.Find(4))->step, 4);  // the newest whatever its size
}

TEST(KeptStepsTest, AnotherEpochBeginsEmpty) {
  KeptSteps kept;
  kept.Add(Step(7));
  kept.Clear();
  EXPECT_EQ(*kept.Find(7), nullptr);
  kept.Add(Step(3));
  EXPECT_EQ((*kept.Find(3))->step, 3);
}

}  // namespace
}  // namespace motley::worker
