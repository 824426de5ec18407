// The passes over one stage's steps, each by golden strings (stage_text.h).
#include "planner/lowering/stage_passes.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/planner/lowering/stage_text.h"

namespace motley::planner {
namespace {

StageSteps Parameters(const std::string& actions, const StageTraits& traits) {
  return WithParameters(ComputeSteps(ScheduleOf(actions), traits), traits);
}
StageSteps Gradients(const std::string& actions, const StageTraits& traits) {
  return WithGradients(ComputeSteps(ScheduleOf(actions), traits), traits);
}

TEST(ComputePassTest, AVirtualStagesUnitsForwardAndBack) {
  const StageTraits traits = StageOfUnits({{0, 1}, {}, {4, 5}}, 6);
  EXPECT_EQ(StepsText(ComputeSteps(ScheduleOf("0F0 2F0 2B0 0B0"), traits)), "F0.0 F1.0 F4.0 F5.0 B5.0 B4.0 B1.0 B0.0");
}

TEST(ComputePassTest, SeveralRoundsMicrobatchByMicrobatchOrBlockByBlock) {
  StageTraits traits = StageOfUnits({{0, 1}}, 2);
  EXPECT_EQ(StepsText(ComputeSteps(ScheduleOf("0F0-1 0B0-1"), traits)), "F0.0 F1.0 F0.1 F1.1 B1.0 B0.0 B1.1 B0.1");
  traits.by_block = true;
  EXPECT_EQ(StepsText(ComputeSteps(ScheduleOf("0F0-1 0B0-1"), traits)), "F0 F1 B1 B0");
}

TEST(ParameterPassTest, HomesAreGatheredBeforeTheFirstStep) {
  const StageSteps stage = Parameters("0F0 0B0", StageOfUnits({{1, 2}}, 4));
  EXPECT_EQ(StepsText(stage), "+1:0 +2:1 F1.0:0 F2.0:1 B2.0:1 B1.0:0");
  EXPECT_EQ(BuffersText(stage.parameter_buffers), "20:1 30:2");
}

TEST(ParameterPassTest, GatheredUnitsTakeTheBufferWhoseLastUseIsLongestAgo) {
  StageTraits traits = StageOfUnits({{0, 1, 2, 3}}, 4);
  traits.by_block = traits.gathers_in_turn = true;
  const StageSteps stage = Parameters("0F0-3 0B0-3", traits);
  EXPECT_EQ(StepsText(stage), "+0:0 +1:1 F0:0 -0 +2:0 F1:1 -1 +3:1 F2:0<0 F3:1<1 B3:1 -1 +1:1 B2:0 -0 +0:0 B1:1<4 -1 B0:0<5 -0");
  EXPECT_EQ(BuffersText(stage.parameter_buffers), "30 40");
}

// A weights' gradient needs no parameters, and makes what is reduced.
TEST(ParameterPassTest, TheSecondPartOfABackwardGathersNothing) {
  StageTraits traits = StageOfUnits({{0, 1, 2}}, 3);
  traits.gathers_in_turn = true;
  EXPECT_EQ(StepsText(Parameters("0F0 0I0 0W0", traits)),
            "+0:0 +1:1 F0.0:0 -0 +2:0 F1.0:1 F2.0:0<0 I2.0:0 -0 +0:0 I1.0:1 -1 I0.0:0<3 -0 W2.0 W1.0 W0.0");
}

TEST(ParameterPassTest, ATiedEmbeddingStaysForTheHead) {
  StageTraits traits = StageOfUnits({{0, 1, 2, 3}}, 4);
  traits.by_block = traits.gathers_in_turn = traits.tied = true;
  const StageSteps stage = Parameters("0F0 0B0", traits);
  EXPECT_EQ(StepsText(stage), "+0:0 +1:1 +2:2 F0:0 F1:1 -1 +3:1 F2:2 F3:1<1 B3:1 -1 +1:1 B2:2 -2 B1:1<4 -1 B0:0 -0");
  EXPECT_EQ(stage.tied_parameters, 0);
}

// The two ends meet in group 2; the embedding's is its home.
TEST(ParameterPassTest, ATiedEmbeddingOnTwoStagesIsGatheredByBoth) {
  StageTraits first = StageOfUnits({{0, 1}, {}}, 4), last = StageOfUnits({{}, {2, 3}}, 4);
  first.tied = last.tied = true;
  first.tied_group = last.tied_group = 2;
  last.group = 1;
  const StageSteps with_embedding = Parameters("0F0 0B0", first), with_head = Parameters("1F0 1B0", last);
  EXPECT_EQ(StepsText(with_embedding), "+0:0@2 +1:1 F0.0:0 F1.0:1 B1.0:1 B0.0:0");
  EXPECT_EQ(StepsText(with_head), "+0:0@2 +2:1@1 +3:2@1 F2.0:1 F3.0:2 B3.0:2 -0 B2.0:1");
  EXPECT_EQ(BuffersText(with_embedding.parameter_buffers), "10:0 20:1");
  EXPECT_EQ(BuffersText(with_head.parameter_buffers), "10 30:2 40:3");
}

TEST(GradientPassTest, AHomeIsReducedOnceBehindItsLastBackward) {
  const StageSteps stage = Gradients("0F0 0B0 0F1 0B1", StageOfUnits({{1, 2}}, 4));
  EXPECT_EQ(StepsText(stage), "F1.0 F2.0 B2.0/1 B1.0/0 F1.1 F2.1 B2.1/1 /2:1 B1.1/0 /1:0");
  EXPECT_EQ(BuffersText(stage.gradient_buffers), "20:1 30:2");
}

TEST(GradientPassTest, TwoBuffersInTurn) {
  StageTraits traits = StageOfUnits({{0, 1, 2}}, 3);
  traits.by_block = traits.reduces_in_turn = true;
  const StageSteps stage = Gradients("0F0-1 0B0-1", traits);
  EXPECT_EQ(StepsText(stage), "F0 F1 F2 B2/0 /2:0 B1/1 /1:1 B0/0<3 /0:0");
  EXPECT_EQ(BuffersText(stage.gradient_buffers), "30 20");
}

TEST(GradientPassTest, EveryRoundIsReduced) {
  StageTraits traits = StageOfUnits({{1, 2}}, 4);
  traits.reduces_in_turn = traits.reduces_every_round = true;
  EXPECT_EQ(StepsText(Gradients("0F0 0B0 0F1 0B1", traits)),
            "F1.0 F2.0 B2.0/0 /2:0 B1.0/1 /1:1 F1.1 F2.1 B2.1/0<2 /2:0 B1.1/1<3 /1:1");
}

TEST(GradientPassTest, ASplitBackwardIsReducedBehindItsLastWeightGradient) {
  EXPECT_EQ(StepsText(Gradients("0F0 0I0 0F1 0I1 0W0 0W1", StageOfUnits({{1}}, 3))), "F1.0 I1.0 F1.1 I1.1 W1.0/0 W1.1/0 /1:0");
}

TEST(GradientPassTest, ATiedHeadsPartGoesWhileTheLayersCompute) {
  StageTraits traits = StageOfUnits({{0, 1, 2}}, 3);
  traits.tied = traits.by_block = traits.reduces_in_turn = true;
  const StageSteps stage = Gradients("0F0 0B0", traits);
  EXPECT_EQ(StepsText(stage), "F0 F1 F2 B2/1 /2:1 /0:0 B1/2 /1:2 B0/0<3 /0:0");
  EXPECT_EQ(stage.tied_gradients, 0);
}

TEST(GradientPassTest, ATiedEmbeddingOnTwoStagesIsReducedAtTheEnd) {
  StageTraits traits = StageOfUnits({{}, {2, 3}}, 4);
  traits.tied = true;
  traits.tied_group = 2;
  EXPECT_EQ(StepsText(Gradients("1F0 1B0", traits)), "F2.0 F3.0 B3.0/2 /3:2 B2.0/1 /2:1 /0:0@2");
}

// From the last unit to the first, whatever the order of virtual stages; by the ranks that hold the unit in all pipelines.
TEST(GradientPassTest, SeveralPipelinesSumOnceInOneOrder) {
  StageTraits traits = StageOfUnits({{1}, {2}}, 4);
  traits.sum_group = {4, 5, 6, 7};
  traits.gather_order = {0, 1, 2, 3};
  traits.sum_order = {3, 2, 1, 0};
  EXPECT_EQ(StepsText(Gradients("0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1", traits)),
            "F1.0 F2.0 B2.0/1 B1.0/0 F1.1 F2.1 B2.1/1 /2:1@6 B1.1/0 /1:0@5");
  EXPECT_EQ(StepsText(Gradients("0F0 1F0 0B0 1B0", traits)), "F1.0 F2.0 B1.0/0 B2.0/1 /2:1@6 /1:0@5");
}

TEST(ParameterPassTest, SeveralPipelinesGatherTogether) {
  StageTraits traits = StageOfUnits({{1, 2}}, 4);
  traits.sum_group = {4, 5, 6, 7};
  traits.gather_order = {0, 1, 2, 3};
  traits.sum_order = {3, 2, 1, 0};
  EXPECT_EQ(StepsText(Parameters("0F0", traits)), "+1:0@5 +2:1@6 F1.0:0 F2.0:1");
}

// Each unit comes from the other pipelines into what the ranks keep of it, and from there for each pass.
TEST(ParameterPassTest, ShardsComeOnceAndGiveTheirUnitsInTurn) {
  StageTraits traits = StageOfUnits({{1, 2, 3}}, 5);
  traits.sum_group = {4, 5, 6, 7, 8};
  traits.gather_order = {1, 0, 2, 3, 4};
  traits.sum_order = {4, 3, 2, 0, 1};
  traits.gathers_in_turn = true;
  const StageSteps stage = Parameters("0F0", traits);
  EXPECT_EQ(StepsText(stage), "+1:0@5 +1:3 +2:1@6 +2:4 +3:2@7 F1.0:3 -3 +3:3 F2.0:4 -4 F3.0:3<0 -3");
  EXPECT_EQ(BuffersText(stage.parameter_buffers), "20/1 30/2 40/3 40 30");
}

// A tied embedding is used at both ends of a step: it stays whole.
TEST(ParameterPassTest, ATiedEmbeddingIsNoShard) {
  StageTraits traits = StageOfUnits({{0, 1, 2}}, 3);
  traits.tied = true;
  traits.sum_group = {4, 5, 6};
  traits.gather_order = {0, 1, 2};
  traits.sum_order = {2, 1, 0};
  traits.gathers_in_turn = traits.reduces_in_turn = true;
  const StageSteps stage = Parameters("0F0", traits);
  EXPECT_EQ(StepsText(stage), "+0:0@4 +1:1@5 +1:3 +2:2@6 +2:4 F0.0:0 F1.0:3 -3 F2.0:4 -4");
  EXPECT_EQ(BuffersText(stage.parameter_buffers), "10:0 20/1 30/2 20 30");
  EXPECT_EQ(StepsText(Gradients("0F0 0B0", traits)), "F0.0 F1.0 F2.0 B2.0/3 /2:3 B1.0/4 /1:4 /2:2@6 /1:1@5 B0.0/0 /0:0@4");
}

TEST(GradientPassTest, SumsGoToShardsInTurnAndBetweenPipelinesBehindThem) {
  StageTraits traits = StageOfUnits({{1, 2}}, 4);
  traits.sum_group = {4, 5, 6, 7};
  traits.gather_order = {0, 1, 2, 3};
  traits.sum_order = {3, 2, 1, 0};
  traits.reduces_in_turn = traits.reduces_every_round = true;
  const StageSteps stage = Gradients("0F0 0B0 0F1 0B1", traits);
  EXPECT_EQ(StepsText(stage), "F1.0 F2.0 B2.0/2 /2:2 B1.0/3 /1:3 F1.1 F2.1 B2.1/2<2 /2:2 B1.1/3<3 /1:3 /2:1@6 /1:0@5");
  EXPECT_EQ(BuffersText(stage.gradient_buffers), "20/1 30/2 30 20");
}

// The second virtual stage's gradients would be summed before what the ranks sum in the first one's backward: all of the stage
// wait for that. What is behind the last such step, as the embedding's backward, keeps nobody waiting.
TEST(TensorParallelPassTest, ReductionsKeepSumsWaitingOrComeBehindThem) {
  const StageTraits traits = StageOfUnits({{0, 1}, {}, {2}}, 4);
  const StageSteps stage = Gradients("0F0 2F0 2B0 0B0", traits);
  EXPECT_EQ(StepsText(WithRoomForSums(stage, ReductionOrder::kAtOnce)), "F0.0 F1.0 F2.0 B2.0/2 /2:2 B1.0/1<3 /1:1 B0.0/0 /0:0");
  EXPECT_EQ(StepsText(WithRoomForSums(stage, ReductionOrder::kBehindSums)), "F0.0 F1.0 F2.0 B2.0/2 B1.0/1 /2:2 /1:1 B0.0/0 /0:0");
}

TEST(TensorParallelPassTest, WhatIsGatheredInTurnIsWaitedFor) {
  StageTraits traits = StageOfUnits({{1, 2, 3}}, 5);
  traits.gathers_in_turn = true;
  EXPECT_EQ(StepsText(WithRoomForSums(Parameters("0F0 0F1", traits), ReductionOrder::kAtOnce)),
            "+1:0 +2:1 F1.0:0 -0 +3:0 F2.0:1<0 -1 +1:1 F3.0:0<1 -0 +2:0 F1.1:1<2 -1 +3:1 F2.1:0<3 -0 F3.1:1<3 -1");
}

// Buffers are those of the slice, and each array comes in the parts that it is shared by.
TEST(TensorParallelPassTest, ASliceHasItsPartOfTheBuffersAndItsGroup) {
  StageTraits traits = StageOfUnits({{1, 2}}, 4);
  traits.group = 1;
  const SliceElements elements = {{0, 8, 12, 0}, {0, 5, 12, 0}};
  const std::vector<SharedElements> shared = {{}, {{3, {0, 5}}, {1, {5, 3}}}, {{3, {0, 12}}}, {}};
  const StageSteps slice = SliceOf(Parameters("0F0", traits), {elements, shared, shared});
  EXPECT_EQ(StepsText(slice), "+1:0@3[5@0] +1:0@1[3@5] +2:1@3[12@0] F1.0:0 F2.0:1");
  EXPECT_EQ(BuffersText(slice.parameter_buffers), "8:1 12:2");
}

TEST(ComputePassTest, UnitsAreJoinedUntilTheirGradientsGo) {
  StageTraits traits = StageOfUnits({{1, 2, 3}}, 5);
  traits.joins = true;
  EXPECT_EQ(StepsText(Gradients("0F1 0B0-1", traits)), "F1.1 F2.1 F3.1 B1-3.0/0 B3.1/2 /3:2 B2.1/1 /2:1 B1.1/0 /1:0");
  traits.alone = true;
  EXPECT_EQ(StepsText(Gradients("0F0 0I0 0W0", traits)), "F1-3.0 I1-3.0 W1-3.0/0");
}

TEST(ComputePassTest, AStepWaitsForItsOwnGather) {
  StageTraits traits = StageOfUnits({{1, 2}}, 4);
  traits.joins = true;
  EXPECT_EQ(StepsText(Parameters("0F0-1", traits)), "+1:0 +2:1 F1.0:0 F2.0:1 F1-2.1:0");
}

// A stream: the first unit comes alone, the last waits for all others; a gather follows the last use of its buffer.
TEST(ParameterPassTest, StreamsComeForEveryPass) {
  StageTraits traits = StageOfUnits({{1, 2, 3, 4}}, 6);
  traits.joins = traits.gathers_in_turn = traits.streams = traits.alone = true;
  EXPECT_EQ(StepsText(Parameters("0F0 0B0", traits)),
            "+1:0 +2-4:1 F1.0:0 F2-3.0:0 -0 +4:0 F4.0:1 -1 +1-3:1 B4.0:0<1 B2-3.0:0 B1.0:1<2");
}

// Zorse section 3.1.1, with less room than two ministages take: a ministage's units and one more. The last microbatch frees unit
// by unit, and the next ministage's come there. At the turn all stay.
TEST(ParameterPassTest, AMinistagesUnitsAndOneMoreAreThere) {
  StageTraits traits = StageOfUnits({{1, 2}, {3, 4}, {5, 6}}, 8);
  traits.gathers_in_turn = true;
  traits.parameters_in_turn = 2 + 1;
  const StageSteps stage = Parameters("0F0-1 1F0-1 2F0-1 2B0-1 1B0-1 0B0-1", traits);
  EXPECT_EQ(BuffersText(stage.parameter_buffers), "50 60 70");
  EXPECT_EQ(StepsText(stage),
            "+1:0 +2:1 +3:2 F1.0:0 F2.0:1 F1.1:0 -0 +4:0 F2.1:1 -1 +5:1 F3.0:2 F4.0:0<2 F3.1:2 -2 +6:2 F4.1:0 "
            "F5.0:1<3 F6.0:2<6 F5.1:1 F6.1:2 B6.0:2 B5.0:1 B6.1:2 -2 +3:2 B5.1:1 -1 +2:1 B4.0:0 B3.0:2<14 B4.1:0 "
            "-0 +1:0 B3.1:2 -2 B2.0:1<15 B1.0:0<18 B2.1:1 -1 B1.1:0 -0");
}

// A block that several units are joined to finds them all, and takes none of them away.
TEST(ParameterPassTest, AJoinedStepUsesAllOfItsUnits) {
  StageTraits traits = StageOfUnits({{1, 2}, {3, 4}}, 6);
  traits.gathers_in_turn = traits.gathers_by_ministage = traits.joins = traits.alone = true;
  traits.parameters_in_turn = 2 + 1;
  EXPECT_EQ(StepsText(Parameters("0F0-1 1F0-1", traits)),
            "+1:0 +2:1 +3:2 F1.0:0 F2.0:1 F1-2.1:0 -0 -1 +4:0 F3.0:2 F4.0:0<2 F3-4.1:2 -0 -2");
}

}  // namespace
}  // namespace motley::planner
