#include "planner/plan/shared_slices.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/plan_fixture.h"

namespace motley::planner {
namespace {

using ::testing::ElementsAre;

TEST(SharedSlicesTest, TheModelIsCutWhereverASliceEnds) {
  // Half and half, all of it, a quarter and three.
  const std::vector<ModelSlice> slices = {{0, 2, 4}, {2, 4, 4}, {0, 1, 1}, {0, 1, 4}, {1, 4, 4}};
  const std::vector<SharedSlice> shared = SharedSlicesOf(slices, {4, 0, 1, 2, 3});
  ASSERT_EQ(shared.size(), 3u);
  EXPECT_EQ(shared[0].slice, (ModelSlice{0, 1, 4}));
  EXPECT_THAT(shared[0].ranks, ElementsAre(0, 2, 3));
  EXPECT_EQ(shared[1].slice, (ModelSlice{1, 2, 4}));
  EXPECT_THAT(shared[1].ranks, ElementsAre(4, 0, 2));
  EXPECT_EQ(shared[2].slice, (ModelSlice{2, 4, 4}));
  EXPECT_THAT(shared[2].ranks, ElementsAre(4, 1, 2));
  EXPECT_EQ(SharedSlicesOf(slices, {2}).size(), 1u);
}

TEST(SharedSlicesTest, RunsAreOfDividedTensorsAlone) {
  for (const UnitSpec& unit : ParameterLayout(SmallModel(false))) {
    int64_t divided = 0;
    for (const ModelSlice& slice : {ModelSlice{0, 1, 4}, ModelSlice{1, 4, 4}}) {
      for (const SliceRun& run : DividedRunsOf(unit, slice)) divided += run.elements;
    }
    EXPECT_EQ(divided, unit.divided_elements);
  }
}

}  // namespace
}  // namespace motley::planner
