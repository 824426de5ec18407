#include "worker/engine/base/loss_scale.h"

#include <gtest/gtest.h>

namespace motley::engine {
namespace {

TEST(LossScaleTest, OnlyFloat16Scales) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    LossScale scale(dtype);
    EXPECT_FALSE(scale.scales() || scale.may_skip()) << DTypeName(dtype);
    for (int64_t i = 0; i < 2 * LossScale::kGrowthInterval; ++i) scale.Applied();
    EXPECT_EQ(scale.scale(), 1) << DTypeName(dtype);
  }
}

TEST(LossScaleTest, GrowsAndFallsAsGradScaler) {
  LossScale scale(DType::kFloat16);
  EXPECT_EQ(scale.scale(), 65536);
  for (int64_t i = 0; i < 1999; ++i) scale.Applied();
  EXPECT_EQ(scale.scale(), 65536);
  scale.Applied();
  EXPECT_EQ(scale.scale(), 131072);
  for (int64_t i = 0; i < 1999; ++i) scale.Applied();
  scale.Skipped();
  EXPECT_EQ(scale.scale(), 65536);
  // The count begins anew.
  scale.Applied();
  EXPECT_EQ(scale.scale(), 65536);
  EXPECT_EQ(scale.steps_at_scale(), 1);
  EXPECT_EQ(scale.skipped_steps(), 1);
}

TEST(LossScaleTest, StopsAtOneAndThenSkipsTenInARow) {
  LossScale scale(DType::kFloat16);
  for (int i = 0; i < 16; ++i) scale.Skipped();
  EXPECT_EQ(scale.scale(), 1);
  for (int i = 0; i < 9; ++i) scale.Skipped();
  EXPECT_TRUE(scale.may_skip());
  scale.Applied();  // the row ends
  for (int i = 0; i < 9; ++i) scale.Skipped();
  EXPECT_TRUE(scale.may_skip());
  scale.Skipped();
  EXPECT_EQ(scale.scale(), 1);
  EXPECT_FALSE(scale.may_skip());
}

TEST(LossScaleTest, GoesOnFromACheckpoint) {
  LossScale scale(DType::kFloat16);
  scale.Restore(1024, 1999, 3);
  EXPECT_EQ(scale.scale(), 1024);
  EXPECT_EQ(scale.skipped_steps(), 3);
  scale.Applied();
  EXPECT_EQ(scale.scale(), 2048);
}

TEST(LossScaleTest, ACheckpointOfAnotherTypeBringsItsSkippedStepsAlone) {
  LossScale half(DType::kFloat16), whole(DType::kFloat32);
  half.Restore(0, 0, 2);
  EXPECT_EQ(half.scale(), 65536);
  EXPECT_EQ(half.skipped_steps(), 2);
  whole.Restore(1024, 5, 2);
  EXPECT_EQ(whole.scale(), 1);
  EXPECT_EQ(whole.skipped_steps(), 2);
}

}  // namespace
}  // namespace motley::engine
