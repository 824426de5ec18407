#include "coordinator/state/measured_speed.h"

#include <gtest/gtest.h>

#include "common/model/operators.h"

namespace motley::coordinator {
namespace {

// Of an embedding 1 and 2 seconds, of a layer 3 and 6, of a head 5 and 15, whose first are an evaluation's.
TEST(MeasuredSpeedTest, AStepTakesOfAHeadItsBackwardAlone) {
  const ModelShape shape = *ModelFlavor("gpt2", "124M");
  ComputeProfile profile;
  profile.embedding.points = {{1, 1, 2}};
  profile.layer.points = {{2, 6, 12}};
  profile.head.points = {{1, 5, 15}};
  const double seconds = 3 + 12 * 9 + 15;
  const MeasuredSpeed speed = SpeedOf(profile, shape, 64);
  EXPECT_DOUBLE_EQ(speed.tokens_per_second, 64 / seconds);
  const auto both = [&](UnitKind unit) { return ForwardFlops(shape, unit, 1, 64) + BackwardFlops(shape, unit, 1, 64); };
  EXPECT_DOUBLE_EQ(
      speed.flops_per_second,
      (both(UnitKind::kEmbedding) + 12 * both(UnitKind::kLayer) + BackwardFlops(shape, UnitKind::kHead, 1, 64)) / seconds);
}

}  // namespace
}  // namespace motley::coordinator
