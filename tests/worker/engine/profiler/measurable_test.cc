#include "worker/engine/profiler/measurable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::engine {
namespace {

using testing::HasSubstr;

RankAssignment LargeHead(double flops_per_second) {
  RankAssignment assignment;
  assignment.model = {.family = ModelFamily::kLlama,
                      .vocab_size = 32000,
                      .hidden_size = 192,
                      .num_layers = 4,
                      .num_heads = 4,
                      .num_kv_heads = 4,
                      .head_dim = 48,
                      .intermediate_size = 512,
                      .max_positions = 128,
                      .tie_embeddings = false};
  assignment.config.training.seq_len = 128;
  assignment.device.id = DeviceId("b/gpu0");
  assignment.device.flops_per_second = flops_per_second;
  return assignment;
}

// Forward and backward of the head, which computes its logits twice: 8 x 128 x 192 x 32000 FLOPs, 6.3e9.
TEST(MeasurableTest, ADeclaredSpeedThatTakesSecondsASampleIsMeasured) {
  EXPECT_TRUE(CheckMeasurable(LargeHead(1.2e9)).ok()) << "5 s a sample";
}

TEST(MeasurableTest, OneThatTakesMinutesIsRefusedWithUnitAndSeconds) {
  const absl::Status status = CheckMeasurable(LargeHead(1e8));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("declared speed of b/gpu0: one sample's passes through its head take 62"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("declare a faster device"));
}

TEST(MeasurableTest, WhatDeclaresNothingIsMeasured) { EXPECT_TRUE(CheckMeasurable(LargeHead(0)).ok()); }

}  // namespace
}  // namespace motley::engine
