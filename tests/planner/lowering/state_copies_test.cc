// Copies of state to host memory and back, and where units are stepped, by golden strings.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/lowering/rank_passes.h"
#include "tests/planner/lowering/stage_text.h"

namespace motley::planner {
namespace {

TEST(StateCopyPassTest, MomentsComeAndGoAroundTheOptimizer) {
  CopyTraits copies;
  copies.offloads = {.parameters = true, .optimizer = true};
  copies.units = {0, 1};
  EXPECT_EQ(InstructionsText(WithDependencies({WithCopies({Gather{0, 0, 0}, ReduceScalars{}, OptimizerStep{}}, copies)})),
            "0 prefetch_parameters block=0 buffer=0\n"
            "1 gather block=0 buffer=0 group=0 after=0\n"
            "2 reduce_scalars\n"
            "3 prefetch_optimizer block=0 slot=0\n"
            "4 prefetch_optimizer block=1 slot=1\n"
            "5 optimizer_step block=0 slot=0 after=2,3\n"
            "6 offload_optimizer block=0 slot=0 after=5\n"
            "7 optimizer_step block=1 slot=1 after=4\n"
            "8 offload_optimizer block=1 slot=1 after=7\n");
}

// A tied table is summed at both its ends, a tensor-parallel rank's array in ranges; the rank's units need not be neighbours.
TEST(StateCopyPassTest, AUnitIsFetchedAndSteppedOnce) {
  CopyTraits copies;
  copies.offloads.parameters = copies.steps_in_turn = true;
  copies.units = {0, 1};
  const std::vector<Operation> sums = {ReduceScatter{0, 0, 0},
                                       ReduceScatter{1, 1, 0, 0, {0, 4}},
                                       ReduceScatter{1, 1, 1, 0, {4, 2}},
                                       ReduceScatter{0, 0, 0},
                                       ReduceScalars{},
                                       OptimizerStep{}};
  std::vector<int32_t> stepped;
  for (const Operation& op : WithCopies(sums, copies)) {
    if (const auto* step = std::get_if<OptimizerStep>(&op)) stepped.push_back(step->first_unit);
  }
  EXPECT_EQ(stepped, (std::vector<int32_t>{1, 0}));
  copies.steps_in_turn = false;
  copies.units = {0, 1, 4};
  const std::vector<Operation> apart = {Gather{1, 0, 0, 0, {0, 4}}, Gather{1, 0, 1, 0, {4, 2}}, ReduceScalars{}, OptimizerStep{}};
  EXPECT_EQ(OperationsText(WithCopies(apart, copies)),
            "0 prefetch_parameters block=1 buffer=0\n"
            "1 gather block=1 elements=4@0 buffer=0 group=0\n"
            "2 gather block=1 elements=2@4 buffer=0 group=1\n"
            "3 reduce_scalars\n"
            "4 prefetch_optimizer block=0 slot=0\n"
            "5 prefetch_optimizer block=1 slot=1\n"
            "6 optimizer_step block=0 slot=0\n"
            "7 offload_optimizer block=0 slot=0\n"
            "8 prefetch_optimizer block=4 slot=0\n"
            "9 optimizer_step block=1 slot=1\n"
            "10 offload_optimizer block=1 slot=1\n"
            "11 optimizer_step block=4 slot=0\n"
            "12 offload_optimizer block=4 slot=0\n");
}

// So many units ahead as the stage's plan says, each into a slot of its own; steps in turn have the order of the sums.
TEST(StateCopyPassTest, TheOptimizerComesSeveralUnitsAhead) {
  CopyTraits copies;
  copies.offloads = {.optimizer = true};
  copies.units = {0, 1, 2, 3};
  copies.prefetch = 2;
  const auto moves = [&](const std::vector<Operation>& operations) {
    std::string text;
    for (const Operation& op : WithStateCopies(operations, copies)) {
      if (const auto* comes = std::get_if<PrefetchOptimizer>(&op)) absl::StrAppend(&text, " +", comes->unit, ":", comes->slot);
      if (const auto* step = std::get_if<OptimizerStep>(&op)) absl::StrAppend(&text, " ", step->first_unit, ":", step->slot);
    }
    return text;
  };
  EXPECT_EQ(moves({ReduceScalars{}, OptimizerStep{}}), " +0:0 +1:1 +2:2 0:0 +3:0 1:1 2:2 3:0");
  copies.steps_in_turn = true;
  EXPECT_EQ(moves({ReduceScatter{3, 0, 0}, ReduceScatter{2, 1, 0}, ReduceScatter{1, 0, 0}, ReduceScatter{0, 1, 0},
                   ReduceScalars{}, OptimizerStep{}}),
            " +3:0 +2:1 +1:2 3:0 +0:0 2:1 1:2 0:0");
}

// A sum goes whole, behind its last range, and once; that of a unit of another rank stays where it is. The buffer's next first
// write waits for the copy.
TEST(StateCopyPassTest, SumsLeaveBehindTheirLastRange) {
  CopyTraits copies;
  copies.offloads = {.gradients = true, .optimizer = true};
  copies.units = {1, 2};
  const std::vector<Operation> sums = {Backward{2, 0, 0, -1, 0, -1},
                                       ReduceScatter{2, 0, 0, 0, {0, 4}},
                                       ReduceScatter{2, 0, 1, 0, {4, 2}},
                                       Backward{1, 0, 0, -1, 0, -1},
                                       ReduceScatter{1, 0, 0},
                                       ReduceScatter{0, 1, 0}};
  EXPECT_EQ(InstructionsText(WithDependencies({WithCopies(sums, copies)})),
            "0 backward block=2 mb=0 buffer=0 grad=0\n"
            "1 reduce_scatter block=2 elements=4@0 grad=0 group=0 after=0\n"
            "2 reduce_scatter block=2 elements=2@4 grad=0 group=1\n"
            "3 offload_gradients block=2 grad=0 after=2\n"
            "4 backward block=1 mb=0 buffer=0 grad=0 after=3\n"
            "5 reduce_scatter block=1 grad=0 group=0 after=4\n"
            "6 offload_gradients block=1 grad=0 after=5\n"
            "7 reduce_scatter block=0 grad=1 group=0\n");
}

// In turn two units' optimizers come before the first sum, and a unit is stepped before the next one's: out of its buffer where
// that is no home. Inputs have the slots before.
TEST(StateCopyPassTest, AUnitIsSteppedBesideTheBackwardOfTheUnitBefore) {
  CopyTraits copies;
  copies.offloads = {.optimizer = true};
  copies.steps_in_turn = copies.sums_stay = true;
  copies.units = {1, 2};
  const std::vector<Operation> step = {PrefetchActivation{1, 0, 0},
                                       PrefetchActivation{1, 1, 1},
                                       Backward{2, 0, 0, -1, 0, -1},
                                       ReduceScatter{2, 0, 0},
                                       Backward{1, 0, 0, -1, 1, -1},
                                       ReduceScatter{1, 1, 0},
                                       ReduceScalars{},
                                       OptimizerStep{}};
  EXPECT_EQ(InstructionsText(WithDependencies({WithStateCopies(step, copies)})),
            "0 prefetch_activation block=1 mb=0 slot=0\n"
            "1 prefetch_activation block=1 mb=1 slot=1\n"
            "2 backward block=2 mb=0 buffer=0 grad=0\n"
            "3 prefetch_optimizer block=2 slot=2\n"
            "4 prefetch_optimizer block=1 slot=3\n"
            "5 reduce_scatter block=2 grad=0 group=0 after=2\n"
            "6 backward block=1 mb=0 buffer=0 grad=1 after=0\n"
            "7 optimizer_step block=2 slot=2 grad=0 after=3,5\n"
            "8 offload_optimizer block=2 slot=2 after=7\n"
            "9 reduce_scatter block=1 grad=1 group=0 after=6\n"
            "10 optimizer_step block=1 slot=3 grad=1 after=4,9\n"
            "11 offload_optimizer block=1 slot=3 after=10\n"
            "12 reduce_scalars\n");
  // Or at the latest when its buffer is used again.
  const std::vector<Operation> soon = {ReduceScatter{2, 0, 0}, Backward{1, 0, 0, -1, 1, -1}, Backward{1, 1, 0, -1, 0, -1}};
  EXPECT_THAT(OperationsText(WithStateCopies(soon, copies)),
              testing::HasSubstr("\n2 backward block=1 mb=0 buffer=0 grad=1\n3 optimizer_step block=2 slot=0 grad=0\n"));
  copies.sums_stay = false;
  copies.offloads = OffloadKinds::None();
  EXPECT_THAT(OperationsText(WithStateCopies(step, copies)), testing::HasSubstr("\n5 optimizer_step block=2\n6 reduce_scatter"));
}

// The next one's state comes into the slot that one has left, and the last ones go while there is still something to compute.
TEST(StateCopyPassTest, TheLastUnitsAreSteppedHalfwayInTheNextOnesBackward) {
  CopyTraits copies;
  copies.offloads.parameters = copies.steps_in_turn = copies.sums_stay = true;
  copies.units = {0, 1, 2, 3};
  std::vector<Operation> step;
  for (const int32_t unit : {3, 2, 1, 0}) {
    for (const int32_t mb : {0, 1, 2, 3}) step.push_back(Backward{unit, mb, 0, -1, unit % 2, -1});
    step.push_back(ReduceScatter{unit, unit % 2, 0});
  }
  step.push_back(ReduceScalars{});
  std::string text;
  for (const Operation& op : WithStateCopies(step, copies)) {
    if (const auto* backward = std::get_if<Backward>(&op)) absl::StrAppend(&text, "b", backward->unit, " ");
    if (const auto* sum = std::get_if<ReduceScatter>(&op)) absl::StrAppend(&text, "sum", sum->unit, " ");
    if (const auto* in = std::get_if<PrefetchOptimizer>(&op)) absl::StrAppend(&text, "in", in->unit, " ");
    if (const auto* out = std::get_if<OffloadOptimizer>(&op)) absl::StrAppend(&text, "out", out->unit, " ");
  }
  EXPECT_EQ(text,
            "b3 b3 b3 b3 in3 in2 sum3 b2 b2 b2 b2 out3 in1 sum2 "
            "b1 b1 out2 in0 b1 b1 sum1 b0 b0 out1 b0 b0 sum0 out0 ");
}

}  // namespace
}  // namespace motley::planner
