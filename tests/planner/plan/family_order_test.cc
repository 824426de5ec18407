// The orders of the families, word by word.
#include "planner/plan/family_order.h"

#include "gtest/gtest.h"

namespace motley::planner {
namespace {

std::string OrderText(ScheduleFamily family, const StagePlace& shape) {
  std::string text;
  for (const Action& action : FamilyOrder(family, shape)) text += (text.empty() ? "" : " ") + ToText(std::vector<Action>{action});
  return text;
}

TEST(FamilyOrderTest, Layered) {
  EXPECT_EQ(OrderText(ScheduleFamily::kLayered, {0, 1, {0}, 4, 0}), "0F0-3 0B0-3");
  EXPECT_EQ(OrderText(ScheduleFamily::kLayered, {1, 2, {1, 3}, 2, 0}), "1F0-1 3F0-1 3B0-1 1B0-1");
}

TEST(FamilyOrderTest, GPipe) { EXPECT_EQ(OrderText(ScheduleFamily::kGPipe, {1, 2, {1}, 3, 3}), "1F0 1F1 1F2 1B0 1B1 1B2"); }

TEST(FamilyOrderTest, OneForwardOneBackward) {
  EXPECT_EQ(OrderText(ScheduleFamily::k1F1B, {0, 3, {0}, 4, 3}), "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  EXPECT_EQ(OrderText(ScheduleFamily::k1F1B, {2, 3, {2}, 4, 1}), "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3");
  // More in flight than there are microbatches, and fewer than one.
  EXPECT_EQ(OrderText(ScheduleFamily::k1F1B, {0, 3, {0}, 2, 9}), "0F0 0F1 0B0 0B1");
  EXPECT_EQ(OrderText(ScheduleFamily::k1F1B, {0, 3, {0}, 2, 0}), "0F0 0B0 0F1 0B1");
}

// The last virtual stage's backward comes first, so the forwards of the others come before it; then the next microbatch's.
TEST(FamilyOrderTest, AStageAlonePassesAMicrobatchThroughAllItsVirtualStages) {
  EXPECT_EQ(OrderText(ScheduleFamily::k1F1B, {0, 1, {0, 1, 2}, 2, 1}), "0F0 1F0 2F0 2B0 1B0 0B0 0F1 1F1 2F1 2B1 1B1 0B1");
  EXPECT_EQ(OrderText(ScheduleFamily::kZeroBubble, {0, 1, {0, 1}, 2, 1}), "0F0 1F0 1I0 1W0 0I0 0W0 0F1 1F1 1I1 1W1 0I1 0W1");
  // What it keeps is counted in forwards of one virtual stage.
  EXPECT_EQ(OrderText(ScheduleFamily::k1F1B, {0, 1, {0, 1}, 3, 4}), "0F0 1F0 0F1 1F1 1B0 0B0 0F2 1F2 1B1 0B1 1B2 0B2");
}

// Megatron-LM, Efficient Large-Scale Language Model Training, figure 4: two stages of two virtual stages.
TEST(FamilyOrderTest, Interleaved) {
  EXPECT_EQ(OrderText(ScheduleFamily::kInterleaved, {0, 2, {0, 2}, 4, 5}),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  EXPECT_EQ(OrderText(ScheduleFamily::kInterleaved, {1, 2, {1, 3}, 2, 3}), "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1");
}

TEST(FamilyOrderTest, ZeroBubble) {
  EXPECT_EQ(OrderText(ScheduleFamily::kZeroBubble, {0, 2, {0}, 3, 2}), "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
  EXPECT_EQ(OrderText(ScheduleFamily::kZeroBubble, {1, 2, {1}, 3, 1}), "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2");
}

// Two stages, virtual stages 0 1 1 0: as PyTorch's ScheduleZBVZeroBubble orders four microbatches.
TEST(FamilyOrderTest, ZeroBubbleV) {
  EXPECT_EQ(OrderText(ScheduleFamily::kZeroBubbleV, {0, 2, {0, 3}, 4, 0}),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3");
  EXPECT_EQ(OrderText(ScheduleFamily::kZeroBubbleV, {1, 2, {1, 2}, 4, 0}),
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3");
  // Fewer microbatches than fill the pipeline; a stage alone.
  EXPECT_EQ(OrderText(ScheduleFamily::kZeroBubbleV, {1, 2, {1, 2}, 1, 0}), "1F0 2F0 2I0 2W0 1I0 1W0");
  EXPECT_EQ(OrderText(ScheduleFamily::kZeroBubbleV, {0, 1, {0}, 2, 1}), "0F0 0I0 0W0 0F1 0I1 0W1");
}

TEST(FamilyOrderTest, AStageWithoutRoundsComputesNothing) { EXPECT_EQ(OrderText(ScheduleFamily::k1F1B, {0, 2, {0}, 0, 1}), ""); }

TEST(FamilyOrderTest, WhatAnyStagesCanFollow) {
  EXPECT_EQ(ToText(OrderByVirtualStage(ScheduleFamily::kInterleaved, {0, 2, {0, 2}, 2, 1})), "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
  EXPECT_EQ(ToText(OrderByVirtualStage(ScheduleFamily::kZeroBubble, {0, 1, {0}, 2, 1})), "0F0 0F1 0I0 0W0 0I1 0W1");
  EXPECT_EQ(ToText(ForwardOrder({0, 2, {0, 2}, 2, 1})), "0F0-1 2F0-1");
}

}  // namespace
}  // namespace motley::planner
