#include "planner/search/pipeline_seconds.h"

#include <gtest/gtest.h>

namespace motley::planner {
namespace {

// Four stages of 1 s, no way between them: the ramp of three and eight at full pace.
TEST(PipelineSecondsTest, IdealPipeline) {
  EXPECT_DOUBLE_EQ(PipelineSeconds({{1, 1, 1, 1}, {0, 0, 0}, 0, 8, 1}), 4 + 7);
  EXPECT_DOUBLE_EQ(PipelineSeconds({{1, 1, 1, 1}, {0, 0, 0}, 0, 8, 2}), 1.0 + 3.0 / 2 + 7);  // half the ramp
  EXPECT_DOUBLE_EQ(PipelineSeconds({{2, 1}, {0}, 0, 5, 1}), 3 + 4 * 2);                      // the slowest stage's pace
  EXPECT_DOUBLE_EQ(PipelineSeconds({{1}, {}, 0, 5, 1}), 5);
}

// Two stages of 1 s with 0.5 s between: a microbatch more in flight pays for half of the way there and back.
TEST(PipelineSecondsTest, WaysThatOneMicrobatchInFlightDoesNotHide) {
  EXPECT_DOUBLE_EQ(PipelineSeconds({{1, 1}, {0.5}, 0, 9, 1}), 2 + 1 + 8 * 1.5);
  EXPECT_DOUBLE_EQ(PipelineSeconds({{1, 1}, {0.5}, 0, 2, 1}), 2 + 1 + 1);  // both in flight: nobody waits
  EXPECT_DOUBLE_EQ(PipelineSeconds({{1, 1}, {0.0}, 3, 9, 1}), 2 + 8 * 3);  // a link that carries 3 s of traffic
}

}  // namespace
}  // namespace motley::planner
