// From a stage's steps to one rank's program, by golden strings.
#include "planner/lowering/rank_passes.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "planner/lowering/stage_passes.h"
#include "tests/planner/lowering/stage_text.h"

namespace motley::planner {
namespace {

// A model of embedding, layer and head on one stage.
StageSteps OneStage(const std::string& actions, bool training = true) {
  const StageTraits traits = StageOfUnits({{0, 1, 2}}, 3);
  StageSteps stage = WithParameters(ComputeSteps(ScheduleOf(actions), traits), traits);
  return training ? WithGradients(std::move(stage), traits) : stage;
}
StageMember OneMicrobatch(size_t steps) {
  StageMember own;
  for (size_t i = 0; i < steps; ++i) own.steps.push_back({i});
  return own;
}

TEST(OperationPassTest, LayersRunAgainWhereTheBoundaryAloneWasKept) {
  EXPECT_EQ(
      OperationsText(OperationsOf(OneStage("0F0 0B0"), OneMicrobatch(6), {.recompute = OpSet::All(), .head = 2}).operations),
      "0 gather block=0 buffer=0 group=0\n"
      "1 gather block=1 buffer=1 group=0\n"
      "2 gather block=2 buffer=2 group=0\n"
      "3 forward block=0 mb=0 buffer=0 keep=all\n"
      "4 forward block=1 mb=0 buffer=1 keep=boundary\n"
      "5 forward block=2 mb=0 buffer=2 keep=all\n"
      "6 backward block=2 mb=0 buffer=2 grad=2\n"
      "7 reduce_scatter block=2 grad=2 group=0\n"
      "8 recompute block=1 mb=0 buffer=1\n"
      "9 backward block=1 mb=0 buffer=1 grad=1\n"
      "10 reduce_scatter block=1 grad=1 group=0\n"
      "11 backward block=0 mb=0 buffer=0 grad=0\n"
      "12 reduce_scatter block=0 grad=0 group=0\n"
      "13 reduce_scalars\n"
      "14 optimizer_step\n");
}

TEST(OperationPassTest, SingleOperatorsAreNamed) {
  const std::string text = OperationsText(
      OperationsOf(OneStage("0F0 0B0"), OneMicrobatch(6), {.recompute = OpSet().With(Op::kNorm1).With(Op::kUp), .head = 2})
          .operations);
  EXPECT_NE(text.find("4 forward block=1 mb=0 buffer=1 keep=boundary ops=norm1,up\n"), std::string::npos) << text;
  EXPECT_NE(text.find("8 recompute block=1 mb=0 buffer=1 ops=norm1,up\n"), std::string::npos) << text;
}

TEST(OperationPassTest, ABackwardInTwoParts) {
  EXPECT_EQ(
      OperationsText(OperationsOf(OneStage("0F0 0I0 0W0"), OneMicrobatch(9), {.recompute = OpSet::All(), .head = 2}).operations),
      "0 gather block=0 buffer=0 group=0\n"
      "1 gather block=1 buffer=1 group=0\n"
      "2 gather block=2 buffer=2 group=0\n"
      "3 forward block=0 mb=0 buffer=0 keep=all\n"
      "4 forward block=1 mb=0 buffer=1 keep=boundary\n"
      "5 forward block=2 mb=0 buffer=2 keep=all\n"
      "6 backward_input block=2 mb=0 buffer=2\n"
      "7 recompute block=1 mb=0 buffer=1\n"
      "8 backward_input block=1 mb=0 buffer=1\n"
      "9 backward_input block=0 mb=0 buffer=0\n"
      "10 backward_weight block=2 mb=0 grad=2\n"
      "11 reduce_scatter block=2 grad=2 group=0\n"
      "12 backward_weight block=1 mb=0 grad=1\n"
      "13 reduce_scatter block=1 grad=1 group=0\n"
      "14 backward_weight block=0 mb=0 grad=0\n"
      "15 reduce_scatter block=0 grad=0 group=0\n"
      "16 reduce_scalars\n"
      "17 optimizer_step\n");
}

TEST(OperationPassTest, WithoutSamplesARankAddsZeroes) {
  EXPECT_EQ(OperationsText(OperationsOf(OneStage("0F0 0B0"), {}, {.head = 2}).operations),
            "0 gather block=0 buffer=0 group=0\n"
            "1 gather block=1 buffer=1 group=0\n"
            "2 gather block=2 buffer=2 group=0\n"
            "3 zero_grad block=2 grad=2\n"
            "4 reduce_scatter block=2 grad=2 group=0\n"
            "5 zero_grad block=1 grad=1\n"
            "6 reduce_scatter block=1 grad=1 group=0\n"
            "7 zero_grad block=0 grad=0\n"
            "8 reduce_scatter block=0 grad=0 group=0\n"
            "9 reduce_scalars\n"
            "10 optimizer_step\n");
}

TEST(OperationPassTest, AnEvaluationKeepsNothing) {
  EXPECT_EQ(OperationsText(OperationsOf(OneStage("0F0", false), OneMicrobatch(3), {.training = false, .head = 2}).operations),
            "0 gather block=0 buffer=0 group=0\n"
            "1 gather block=1 buffer=1 group=0\n"
            "2 gather block=2 buffer=2 group=0\n"
            "3 forward block=0 mb=0 buffer=0 keep=nothing\n"
            "4 forward block=1 mb=0 buffer=1 keep=nothing\n"
            "5 forward block=2 mb=0 buffer=2 keep=nothing\n"
            "6 reduce_scalars\n");
}

// The middle unit of three, whose input arrives: the leader receives for the other rank.
TEST(OperationPassTest, ALeaderBroadcastsWhatItReceives) {
  const StageTraits traits = StageOfUnits({{}, {1}, {}}, 3);
  const StageSteps stage = WithParameters(ComputeSteps(ScheduleOf("1F0"), traits), traits);
  StageMember own;
  own.steps = {{.step = 0, .arrives = true, .num_receives = 1, .num_sends = 1}};
  own.receives = {ReceiveActivation{1, 0, 0, 1, 5}};
  own.sends = {SendActivation{2, 0, 0, 1, 6}};
  own.passed_when_sent = {0};
  RankTraits rank = {.training = false, .head = 2, .tp_group = 4, .leader = 7};
  EXPECT_EQ(InstructionsText(WithDependencies(OperationsOf(stage, own, rank))),
            "0 gather block=1 buffer=0 group=0\n"
            "1 receive_activation block=1 mb=0 first=0 samples=1 peer=5\n"
            "2 broadcast_activation block=1 mb=0 of=activation group=4 root=7 after=1\n"
            "3 forward block=1 mb=0 segment=attention buffer=0 keep=nothing after=2\n"
            "4 all_reduce_activation block=1 mb=0 segment=attention of=activation group=4 after=3\n"
            "5 forward block=1 mb=0 segment=mlp buffer=0 keep=nothing after=4\n"
            "6 all_reduce_activation block=1 mb=0 of=activation group=4 after=5\n"
            "7 send_activation block=2 mb=0 first=0 samples=1 peer=6 after=6\n"
            "8 reduce_scalars\n");
  rank.follows = true;
  EXPECT_EQ(InstructionsText(WithDependencies(OperationsOf(stage, own, rank))),
            "0 gather block=1 buffer=0 group=0\n"
            "1 broadcast_activation block=1 mb=0 of=activation group=4 root=7\n"
            "2 forward block=1 mb=0 segment=attention buffer=0 keep=nothing after=1\n"
            "3 all_reduce_activation block=1 mb=0 segment=attention of=activation group=4 after=2\n"
            "4 forward block=1 mb=0 segment=mlp buffer=0 keep=nothing after=3\n"
            "5 all_reduce_activation block=1 mb=0 of=activation group=4 after=4\n"
            "6 reduce_scalars\n");
}

// A backward in two parts on a rank of a tensor-parallel unit: the sums are of the first, the second is whole. Of an array that
// is reduced in two ranges zeroes are written once.
TEST(OperationPassTest, SumsStandBetweenSegments) {
  const std::vector<SharedElements> shared = {{{3, {0, 5}}, {0, {5, 5}}}, {{3, {0, 15}}, {0, {15, 5}}}, {{0, {0, 30}}}};
  StageSteps stage = SliceOf(OneStage("0F0 0I0 0W0"), {{{10, 20, 30}, {5, 15, 0}}, shared, shared});
  const RankTraits rank = {.recompute = OpSet::All(), .head = 2, .tp_group = 4, .leader = 0};
  const std::string text = InstructionsText(WithDependencies(OperationsOf(stage, OneMicrobatch(9), rank)));
  EXPECT_EQ(text,
            "0 gather block=0 elements=5@0 buffer=0 group=3\n"
            "1 gather block=0 elements=5@5 buffer=0 group=0\n"
            "2 gather block=1 elements=15@0 buffer=1 group=3\n"
            "3 gather block=1 elements=5@15 buffer=1 group=0\n"
            "4 gather block=2 elements=30@0 buffer=2 group=0\n"
            "5 forward block=0 mb=0 buffer=0 keep=all after=1\n"
            "6 all_reduce_activation block=0 mb=0 of=activation group=4 after=5\n"
            "7 forward block=1 mb=0 segment=attention buffer=1 keep=boundary after=6\n"
            "8 all_reduce_activation block=1 mb=0 segment=attention of=activation group=4 after=7\n"
            "9 forward block=1 mb=0 segment=mlp buffer=1 keep=boundary after=8\n"
            "10 all_reduce_activation block=1 mb=0 of=activation group=4 after=9\n"
            "11 forward block=2 mb=0 segment=logits buffer=2 keep=all after=10\n"
            "12 all_reduce_activation block=2 mb=0 segment=logits of=rows group=4 after=11\n"
            "13 forward block=2 mb=0 segment=loss buffer=2 keep=all after=12\n"
            "14 backward_input block=2 mb=0 buffer=2\n"
            "15 all_reduce_activation block=2 mb=0 of=gradient group=4 after=14\n"
            "16 recompute block=1 mb=0 buffer=1\n"
            "17 backward_input block=1 mb=0 segment=mlp buffer=1 after=15\n"
            "18 all_reduce_activation block=1 mb=0 segment=mlp of=gradient group=4 after=17\n"
            "19 backward_input block=1 mb=0 segment=attention buffer=1 after=18\n"
            "20 all_reduce_activation block=1 mb=0 of=gradient group=4 after=19\n"
            "21 backward_input block=0 mb=0 buffer=0 after=20\n"
            "22 backward_weight block=2 mb=0 grad=2\n"
            "23 reduce_scatter block=2 elements=30@0 grad=2 group=0 after=22\n"
            "24 backward_weight block=1 mb=0 grad=1\n"
            "25 reduce_scatter block=1 elements=15@0 grad=1 group=3 after=24\n"
            "26 reduce_scatter block=1 elements=5@15 grad=1 group=0\n"
            "27 backward_weight block=0 mb=0 grad=0\n"
            "28 reduce_scatter block=0 elements=5@0 grad=0 group=3 after=27\n"
            "29 reduce_scatter block=0 elements=5@5 grad=0 group=0\n"
            "30 reduce_scalars\n"
            "31 optimizer_step after=30\n");
  const std::string zeroes = OperationsText(OperationsOf(stage, {}, rank).operations);
  EXPECT_NE(zeroes.find("zero_grad block=1 grad=1\n8 reduce_scatter block=1 elements=15@0 grad=1 group=3\n"
                        "9 reduce_scatter block=1 elements=5@15 grad=1 group=0\n10 zero_grad block=0"),
            std::string::npos)
      << zeroes;
}

TEST(DependencyPassTest, ABufferIsUsedBetweenItsGatherAndItsRelease) {
  EXPECT_EQ(InstructionsText(WithDependencies({{Gather{0, 0, 0}, Forward{0, 0, 0, -1, Keep::kAll}, Release{0}, Gather{1, 0, 0},
                                                Forward{1, 0, 0, -1, Keep::kAll}, Forward{1, 1, 0, -1, Keep::kAll}}})),
            "0 gather block=0 buffer=0 group=0\n"
            "1 forward block=0 mb=0 buffer=0 keep=all after=0\n"
            "2 release buffer=0\n"
            "3 gather block=1 buffer=0 group=0 after=2\n"
            "4 forward block=1 mb=0 buffer=0 keep=all after=3\n"
            "5 forward block=1 mb=1 buffer=0 keep=all\n");
}

TEST(DependencyPassTest, ABackwardWaitsForItsGradientAndForItsBuffersLastReduction) {
  EXPECT_EQ(
      InstructionsText(WithDependencies(
          {{ReceiveGradient{2, 0, 0, 1, 1}, Backward{1, 0, 0, -1, 0, -1}, SendGradient{1, 0, 0, 1, 2}, ReduceScatter{1, 0, 0},
            ReceiveGradient{2, 1, 1, 1, 1}, Backward{1, 1, 0, -1, 0, -1}, ReduceScalars{}, OptimizerStep{}}})),
      "0 receive_gradient block=2 mb=0 first=0 samples=1 peer=1\n"
      "1 backward block=1 mb=0 buffer=0 grad=0 after=0\n"
      "2 send_gradient block=1 mb=0 first=0 samples=1 peer=2 after=1\n"
      "3 reduce_scatter block=1 grad=0 group=0 after=1\n"
      "4 receive_gradient block=2 mb=1 first=1 samples=1 peer=1\n"
      "5 backward block=1 mb=1 buffer=0 grad=0 after=3,4\n"
      "6 reduce_scalars after=5\n"
      "7 optimizer_step after=6\n");
}

// Five microbatches of one unit: inputs leave behind each forward and come back one backward ahead, into two slots. What would
// only leave and come back stays. A forward waits until the input before the last one has left.
TEST(CopyPassTest, InputsWaitInHostMemory) {
  const StageTraits traits = StageOfUnits({{1}}, 3);
  const StageSteps stage = WithParameters(ComputeSteps(ScheduleOf("0F0-4 0B0-4"), traits), traits);
  StageMember own;
  for (size_t i = 0; i < 10; ++i) own.steps.push_back({i, static_cast<int64_t>(i % 5)});
  CopyTraits copies;
  copies.offloads.activations = true;
  copies.head = 2;
  EXPECT_EQ(InstructionsText(WithDependencies({WithCopies(OperationsOf(stage, own, {.head = 2}).operations, copies)})),
            "0 gather block=1 buffer=0 group=0\n"
            "1 forward block=1 mb=0 buffer=0 keep=all after=0\n"
            "2 offload_activation block=1 mb=0 after=1\n"
            "3 forward block=1 mb=1 buffer=0 keep=all\n"
            "4 offload_activation block=1 mb=1 after=3\n"
            "5 forward block=1 mb=2 buffer=0 keep=all after=2\n"
            "6 offload_activation block=1 mb=2 after=5\n"
            "7 forward block=1 mb=3 buffer=0 keep=all after=4\n"
            "8 offload_activation block=1 mb=3 after=7\n"
            "9 forward block=1 mb=4 buffer=0 keep=all after=6\n"
            "10 offload_activation block=1 mb=4 after=9\n"
            "11 prefetch_activation block=1 mb=0 slot=0\n"
            "12 prefetch_activation block=1 mb=1 slot=1\n"
            "13 backward block=1 mb=0 buffer=0 grad=-1 after=11\n"
            "14 prefetch_activation block=1 mb=2 slot=0 after=13\n"
            "15 backward block=1 mb=1 buffer=0 grad=-1 after=12\n"
            "16 prefetch_activation block=1 mb=3 slot=1 after=15\n"
            "17 backward block=1 mb=2 buffer=0 grad=-1 after=14\n"
            "18 prefetch_activation block=1 mb=4 slot=0 after=17\n"
            "19 backward block=1 mb=3 buffer=0 grad=-1 after=16\n"
            "20 backward block=1 mb=4 buffer=0 grad=-1 after=18\n"
            "21 reduce_scalars after=20\n"
            "22 optimizer_step after=21\n");
}

// Further ahead there are more slots, more that leave, and more that only would.
TEST(CopyPassTest, InputsComeSeveralBackwardsAhead) {
  const StageTraits traits = StageOfUnits({{1}}, 3);
  const StageSteps stage = WithParameters(ComputeSteps(ScheduleOf("0F0-5 0B0-5"), traits), traits);
  StageMember own;
  for (size_t i = 0; i < 12; ++i) own.steps.push_back({i, static_cast<int64_t>(i % 6)});
  CopyTraits copies;
  copies.offloads.activations = true;
  copies.head = 2;
  copies.prefetch = 2;
  RankOperations operations = OperationsOf(stage, own, {.head = 2});
  operations.operations = WithCopies(std::move(operations.operations), copies);
  operations.copies_ahead = copies.slots();
  const std::string text = InstructionsText(WithDependencies(std::move(operations)));
  EXPECT_THAT(text, testing::HasSubstr("5 forward block=1 mb=2 buffer=0 keep=all\n"));
  EXPECT_THAT(text, testing::HasSubstr("7 forward block=1 mb=3 buffer=0 keep=all after=2\n"));
  EXPECT_THAT(text, testing::HasSubstr("13 prefetch_activation block=1 mb=0 slot=0\n14 prefetch_activation block=1 mb=1 slot=1\n"
                                       "15 prefetch_activation block=1 mb=2 slot=2\n16 backward block=1 mb=0 buffer=0 grad=-1 "
                                       "after=13\n17 prefetch_activation block=1 mb=3 slot=0 after=16\n"));
}

// Tokens stay, and so do the head's input and that of a layer whose backward follows soon. A layer of a tensor-parallel unit is
// forward in two halves, the second of which needs the input, and comes back with the first of its backward's.
TEST(CopyPassTest, OnlyInputsOfWholeLayersMove) {
  CopyTraits copies;
  copies.offloads.activations = true;
  copies.head = 3;
  const std::vector<Operation> operations = {Forward{.unit = 0},
                                             Forward{.unit = 1, .segment = UnitSegment::kAttention},
                                             Forward{.unit = 1, .segment = UnitSegment::kMlp},
                                             Forward{.unit = 2},
                                             Forward{.unit = 3},
                                             Backward{.unit = 3},
                                             Backward{.unit = 2},
                                             Backward{.unit = 1, .segment = UnitSegment::kMlp},
                                             Backward{.unit = 1, .segment = UnitSegment::kAttention},
                                             Backward{.unit = 0}};
  const std::string text = OperationsText(WithCopies(operations, copies));
  EXPECT_THAT(text, testing::ContainsRegex("2 forward block=1 .*mlp.*\n3 offload_activation block=1 mb=0\n4 forward block=2"));
  EXPECT_THAT(text, testing::ContainsRegex("prefetch_activation block=1 mb=0 slot=0\n[0-9]+ backward block=2"));
  EXPECT_EQ(WithCopies(operations, copies).size(), operations.size() + 2);
}

// Where forwards and backwards alternate, what comes back next may not be away yet.
TEST(CopyPassTest, NothingComesBackBeforeItLeft) {
  CopyTraits copies;
  copies.offloads.activations = true;
  copies.head = 2;
  std::vector<Operation> operations;
  for (int32_t m = 0; m < 2; ++m) {
    for (int32_t more = 0; more < 4; ++more) operations.push_back(Forward{.unit = 1, .microbatch = 4 * m + more});
    for (int32_t more = 0; more < 4; ++more) operations.push_back(Backward{.unit = 1, .microbatch = 4 * m + more});
  }
  std::vector<int> moves;
  for (const Operation& op : WithCopies(operations, copies)) {
    if (const auto* leaves = std::get_if<OffloadActivation>(&op)) moves.push_back(-1 - leaves->microbatch);
    if (const auto* comes = std::get_if<PrefetchActivation>(&op)) moves.push_back(1 + comes->microbatch);
  }
  EXPECT_EQ(moves, (std::vector<int>{-1, -2, -3, -4, 1, 2, 3, 4, -5, -6, -7, -8, 5, 6, 7, 8}));
}

}  // namespace
}  // namespace motley::planner
