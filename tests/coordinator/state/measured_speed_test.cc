#include "coordinator/state/measured_speed.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

RankAssignment Rank(double flops_per_second) {
  RankAssignment rank;
  rank.model = *ModelFlavor("gpt2", "debug");
  rank.config.training.global_batch_size = 8;
  rank.config.training.seq_len = 16;
  rank.device.flops_per_second = flops_per_second;
  rank.program.microbatches = {{8, 0}};
  return rank;
}

TEST(IdealStepSecondsTest, StagesShareTheModelTheyDoNotEachComputeIt) {
  const double alone = IdealStepSeconds({Rank(3e12)});
  EXPECT_GT(alone, 0);
  EXPECT_DOUBLE_EQ(IdealStepSeconds({Rank(1e12), Rank(2e12)}), alone) << "two stages through which all samples pass";
}

TEST(IdealStepSecondsTest, UnknownWhereADeviceDeclaresNoSpeed) {
  EXPECT_EQ(IdealStepSeconds({Rank(1e12), Rank(0)}), 0);
  EXPECT_EQ(IdealStepSeconds({}), 0);
}

}  // namespace
}  // namespace motley::coordinator
