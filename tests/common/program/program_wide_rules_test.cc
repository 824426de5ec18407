// Programs that break the rules of what the engine does not run yet: ranges, a split backward, tensor parallelism, copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/program/engine_subset.h"
#include "tests/common/program/broken_program.h"
#include "tests/common/program/program_texts.h"
#include "tests/common/program/wide_program_texts.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

class BrokenWideTest : public testing::TestWithParam<Broken> {};

TEST_P(BrokenWideTest, IsRefusedByItsRule) { ExpectRefused(GetParam()); }

// clang-format off
INSTANTIATE_TEST_SUITE_P(
    Ranges, BrokenWideTest,
    testing::Values(
        Broken{"UnitBeyond", kWide, {{"1", "gather block=1-5 buffer=1 group=0"}}, "", "unit 5 does not exist"},
        Broken{"MicrobatchBeyond", kWide, {{"2", "forward block=0 mb=0-2 buffer=0 keep=all after=0"}}, "",
               "microbatch 2 does not exist; the program has 2"},
        Broken{"TooManyInAll", kWide, {{"2", "forward block=0-65535 mb=0-1048575 buffer=0 keep=all after=0"}}, "",
               "header: its ranges are of more than 1048576 units and microbatches in all"},
        Broken{"NoRoom", kWide, {{"parameters", "16448,147840x2"}}, "",
               "parameter buffer 1 still holds unit 1; release it first"},
        Broken{"RoomOfNone", kWide, {{"parameters", "16448,147840x0"}}, "", "must have room for at least 1 unit, got 0"},
        Broken{"GradientRoom", kWide, {{"gradients", "16448,147840x2"}}, "",
               "gradient buffer 1 still holds unit 3; reduce it first"},
        Broken{"HomeOfOthers", kSplitBackward, {{"parameters", "16448:0,98560:1-3"}}, "",
               "is the home of unit 3, which the rank does not hold"},
        Broken{"SecondHome", kSplitBackward, {{"gradients", "16448:0,98560:0-1"}}, "", "is a second home of unit 0"},
        Broken{"HomeGatheredTwice", kSplitBackward, {{"0", "gather block=1 buffer=1 group=0"}}, "",
               "is a home and gathered already"},
        Broken{"UnitNotInTheRange", kWide, {{"1", "gather block=1-2 buffer=1 group=0"}}, "",
               "parameter buffer 1 holds unit 1, not unit 3; gather it first"},
        Broken{"RangeRunsTwice", kWide, {{"4", "forward block=0-3 mb=0-1 buffer=1 keep=boundary after=1"}}, "",
               "parameter buffer 1 holds unit 1, not unit 0"},
        Broken{"ReleaseOfPart", kWide, {{"17", "gather block=1-2 buffer=1 group=0 after=12"},
                                        {"18", "release buffer=1"}}, "",
               "the release of parameter buffer 1 must wait for its gather"}),
    NameOfBroken);

INSTANTIATE_TEST_SUITE_P(
    Elements, BrokenWideTest,
    testing::Values(
        Broken{"OfSeveralUnits", kWide, {{"1", "gather block=1-3 elements=5@0 buffer=1 group=0"}}, "",
               "a range of elements is of one unit"},
        Broken{"ReducedOfSeveral", kWide, {{"15", "all_reduce block=2-3 elements=5@0 grad=1 group=0 after=11"}}, "",
               "a range of elements is of one unit"},
        Broken{"GatheredTwice", kWide, {{"6", "gather block=4 elements=8449@7999 buffer=0 group=0"}}, "",
               "elements 7999 to 8000 of unit 4 are gathered twice"},
        Broken{"WithAHole", kWide, {{"6", "gather block=4 elements=8440@8008 buffer=0 group=0"}}, "",
               "parameter buffer 0 holds 16440 of the 16448 elements of unit 4; gather the rest first"},
        Broken{"WholeBesidePart", kWide, {{"6", "gather block=4 buffer=0 group=0"}}, "", "still holds unit 4; release it first"},
        Broken{"ReducedTwice", kWide, {{"14", "reduce_scatter block=4 elements=8448@7000 grad=0 group=0"}}, "",
               "elements 7000 to 8000 of unit 4 are reduced twice"},
        Broken{"RestReducedWhole", kWide, {{"14", "reduce_scatter block=4 grad=0 group=0"}}, "",
               "a part of the gradients of unit 4 was reduced; reduce the rest alone"},
        Broken{"WrittenBetween", kWide, {{"14", "backward_weight block=4 mb=0 grad=0 after=13"}}, "",
               "already ran microbatch 0's backward of the weights"},
        Broken{"NotAllReduced", kWide, {{"14", "release buffer=0"}}, "", "holds nothing"}),
    NameOfBroken);

INSTANTIATE_TEST_SUITE_P(
    SplitBackward, BrokenWideTest,
    testing::Values(
        Broken{"WeightFirst", kSplitBackward, {{"4", "backward_weight block=1-2 mb=0 grad=1"}}, "",
               "microbatch 0 must run unit 2's backward_input first"},
        Broken{"WeightTwice", kSplitBackward, {{"11", "backward_weight block=1 mb=0 grad=1"}}, "",
               "unit 1 already ran microbatch 0's backward of the weights"},
        Broken{"WeightNever", kSplitBackward, {{"11", "zero_grad block=0 grad=0"}}, "",
               "at its end: unit 0 never ran microbatch 0's backward_weight"},
        Broken{"InputTwice", kSplitBackward, {{"8", "backward_input block=1-2 mb=0 buffer=1"}}, "",
               "unit 2 already ran microbatch 0 backward"},
        Broken{"BothAfterInput", kSplitBackward, {{"8", "backward block=1-2 mb=0 buffer=1 grad=1"}}, "",
               "unit 2 already ran microbatch 0 backward"},
        Broken{"InputOutOfOrder", kSplitBackward, {{"4", "backward_input block=0 mb=0 buffer=0"}}, "",
               "must run unit 1 backward first"},
        Broken{"WeightAfterReduction", kSplitBackward, {{"14", "backward_weight block=0 mb=0 grad=0"}}, "",
               "already ran microbatch 0's backward of the weights"},
        Broken{"TiedWeightAlone", kSplitBackward, {{"9", "backward_weight block=1-2 mb=0-1 grad=1 tied_grad=0"}}, "",
               "tied and tied_grad belong together"},
        Broken{"InEvaluation", kRows, {{"6", "backward_input block=1 mb=0 buffer=1"}}, "",
               "an evaluation program has only forward work"}),
    NameOfBroken);

INSTANTIATE_TEST_SUITE_P(
    Operators, BrokenWideTest,
    testing::Values(
        Broken{"OfNoBoundary", kWide, {{"4", "forward block=1-3 mb=0-1 buffer=1 keep=all ops=attention after=1"}}, "",
               "only keep=boundary is of some operators"},
        Broken{"OfTheEmbedding", kWide, {{"2", "forward block=0 mb=0-1 buffer=0 keep=boundary ops=attention after=0"}}, "",
               "operators are those of a layer"},
        Broken{"OtherOnes", kWide, {{"10", "recompute block=1-3 mb=0-1 buffer=1 ops=attention"}}, "",
               "it must name the operators of its forward"}),
    NameOfBroken);

INSTANTIATE_TEST_SUITE_P(
    Segments, BrokenWideTest,
    testing::Values(
        Broken{"OfTwoUnits", kFollower, {{"4", "forward block=1-2 mb=0 segment=attention buffer=1 keep=all"}}, "",
               "parameter buffer 1 holds unit 2, not unit 1"},
        Broken{"OfARange", kWide, {{"4", "forward block=1-3 mb=0-1 segment=attention buffer=1 keep=all after=1"}}, "",
               "a segment is of one unit"},
        Broken{"OfTheEmbedding", kRows, {{"2", "forward block=0 mb=0 segment=attention buffer=0 keep=nothing after=0"}}, "",
               "unit 0 has no such segment"},
        Broken{"OfTheHead", kRows, {{"4", "forward block=1 mb=0 segment=mlp buffer=1 keep=nothing after=3"}}, "",
               "unit 1 has no such segment"},
        Broken{"SecondFirst", kFollower, {{"4", "forward block=2 mb=0 segment=mlp buffer=1 keep=all"}}, "",
               "the other segment comes first"},
        Broken{"FirstTwice", kFollower, {{"6", "forward block=2 mb=0 segment=attention buffer=1 keep=all after=5"}}, "",
               "this segment ran already"},
        Broken{"WholeAfterOne", kFollower, {{"6", "forward block=2 mb=0 buffer=1 keep=all after=5"}}, "",
               "one of its segments ran alone; run the other one"},
        Broken{"OneAlone", kFollower, {{"6", "release buffer=1 after=5"}}, "", "is a home, which is never released"},
        Broken{"BackwardForwards", kFollower, {{"9", "backward block=2 mb=0 segment=attention buffer=1 grad=1 after=8"}}, "",
               "the other segment comes first"},
        Broken{"KeepsUnlike", kFollower, {{"6", "forward block=2 mb=0 segment=mlp buffer=1 keep=boundary after=5"}}, "",
               "both segments must keep the same"}),
    NameOfBroken);

INSTANTIATE_TEST_SUITE_P(
    TensorParallel, BrokenWideTest,
    testing::Values(
        Broken{"NotInTheGroup", kFollower, {{"3", "forward block=1 mb=0 buffer=0 keep=all tp=1 after=2"}}, "",
               "the rank is not in group 1"},
        Broken{"NoSuchGroup", kFollower, {{"3", "forward block=1 mb=0 buffer=0 keep=all tp=9 after=2"}}, "",
               "group 9 does not exist"},
        Broken{"InASegment", kFollower, {{"4", "forward block=2 mb=0 segment=attention buffer=1 keep=all tp=4"}}, "",
               "a segment names no tp group"},
        Broken{"BackwardWithout", kFollower, {{"13", "backward block=1 mb=0 buffer=0 grad=0 after=12"}}, "",
               "it must name the tp group of its forward"},
        Broken{"SumsTwice", kFollower, {{"4", "all_reduce_activation block=1 mb=0 of=activation group=4 after=3"}}, "",
               "the sums of unit 1 are inside its instructions"},
        Broken{"SumTwice", kFollower,
               {{"7", "all_reduce_activation block=2 mb=0 segment=attention of=activation group=4 after=6"}}, "",
               "it was summed already"},
        Broken{"SumOfNothing", kFollower,
               {{"3", "all_reduce_activation block=2 mb=0 segment=attention of=activation group=4 after=2"}}, "",
               "what it sums was not made yet"},
        Broken{"SumTooLate", kFollower,
               {{"5", "forward block=2 mb=0 segment=mlp buffer=1 keep=all"},
                {"6", "all_reduce_activation block=2 mb=0 segment=attention of=activation group=4 after=5"}}, "",
               "what it sums was used already"},
        Broken{"SumBeforeItsTerms", kFollower,
               {{"5", "all_reduce_activation block=2 mb=0 segment=attention of=activation group=4"}}, "",
               "it must wait for what makes its terms"},
        Broken{"UseBeforeSum", kFollower, {{"6", "forward block=2 mb=0 segment=mlp buffer=1 keep=all"}}, "",
               "it must wait for the sum behind the other segment"},
        Broken{"SendBeforeSum", kLeader, {{"9", "send_activation block=3 mb=0 first=0 samples=2 peer=3 after=7"}}, "",
               "it must wait for the sum behind unit 2"},
        Broken{"SumOfWhatWasSent", kLeader,
               {{"8", "send_activation block=3 mb=0 first=0 samples=2 peer=3 after=7"},
                {"9", "all_reduce_activation block=2 mb=0 segment=mlp of=activation group=4 after=7"}}, "",
               "what it sums was used already"},
        Broken{"TwoGroups", kLeader, {{"8", "all_reduce_activation block=2 mb=0 segment=mlp of=activation group=1 after=7"}}, "",
               "the sums of a unit are of one group"},
        Broken{"SumMissing", kFollower,
               {{"5", "release buffer=9"}, {"6", "forward block=2 mb=0 segment=mlp buffer=1 keep=all"}}, "",
               "parameter buffer 9 does not exist"},
        Broken{"OutputNeverSummed", kFollower, {{"7", "gather block=2 buffer=1 group=2"}}, "", "is a home and gathered already"},
        Broken{"RowsOfALayer", kFollower,
               {{"5", "all_reduce_activation block=2 mb=0 segment=attention of=rows group=4 after=4"}}, "",
               "rows are of the head's logits"},
        Broken{"RowsTooLate", kRows, {{"5", "forward block=1 mb=0 segment=loss buffer=1 keep=nothing"},
                                      {"6", "all_reduce_activation block=1 mb=0 segment=logits of=rows group=0 after=5"},
                                      {"7", "reduce_scalars"}}, "", "what it sums was used already"},
        Broken{"RowsMissing", kRows, {{"3", "gather block=0 buffer=0 group=1 after=2"}}, "", "still holds unit 0"},
        Broken{"HeadsOutput", kRows,
               {{"5", "all_reduce_activation block=1 mb=0 segment=logits of=activation group=0 after=4"}}, "",
               "the head's output is a number"},
        Broken{"TokensGradient", kRows, {{"3", "all_reduce_activation block=0 mb=0 of=gradient group=0 after=2"}}, "",
               "the input of unit 0 has no gradient"},
        Broken{"LeaderNeverSends", kLeader, {{"9", "receive_gradient block=3 mb=0 first=0 samples=1 peer=3"},
                                             {"10", "receive_gradient block=3 mb=0 first=1 samples=1 peer=3"}}, "",
               "at its end: unit 2's output of 2 samples of microbatch 0 is never sent"}),
    NameOfBroken);

INSTANTIATE_TEST_SUITE_P(
    Broadcasts, BrokenWideTest,
    testing::Values(
        Broken{"RootOutside", kRows, {{"0", "broadcast block=0 buffer=0 group=0 root=2"}}, "", "root 2 is not in group 0 (0,1)"},
        Broken{"OtherGroup", kFollower, {{"2", "broadcast_activation block=1 mb=0 of=activation group=1 root=1"}}, "",
               "the rank is not in group 1"},
        Broken{"ActivationRoot", kFollower, {{"2", "broadcast_activation block=1 mb=0 of=activation group=4 root=3"}}, "",
               "root 3 is not in group 4 (1,2)"},
        Broken{"OfRows", kFollower, {{"2", "broadcast_activation block=1 mb=0 of=rows group=4 root=1"}}, "",
               "rows are summed, not broadcast"},
        Broken{"InsideTheRank", kFollower, {{"2", "broadcast_activation block=2 mb=0 of=activation group=4 root=1"}}, "",
               "the rank holds unit 1 itself; nothing is handed over"},
        Broken{"OfWhatDidNotCome", kLeader, {{"2", "gather block=1 buffer=0 group=1"}}, "", "is a home and gathered already"},
        Broken{"RootWithout", kFollower, {{"2", "broadcast_activation block=1 mb=0 of=activation group=4 root=2"}}, "",
               "the input of 2 samples of microbatch 0 was not received"},
        Broken{"RootBeforeItsReceipt", kLeader, {{"3", "broadcast_activation block=1 mb=0 of=activation group=4 root=1"}}, "",
               "it must wait for what it receives for microbatch 0"},
        Broken{"Twice", kFollower, {{"8", "broadcast_activation block=1 mb=0 of=activation group=4 root=1"}}, "",
               "are handed over twice"},
        Broken{"UseBefore", kFollower, {{"3", "forward block=1 mb=0 buffer=0 keep=all tp=4 after=0"}}, "",
               "it must wait for what it receives for microbatch 0"}),
    NameOfBroken);

INSTANTIATE_TEST_SUITE_P(
    Copies, BrokenWideTest,
    testing::Values(
        Broken{"OfTokens", kCopies, {{"7", "offload_activation block=0 mb=0 after=6"}}, "", "the input of unit 0 are tokens"},
        Broken{"BeforeItsForward", kCopies, {{"5", "offload_activation block=1 mb=0 after=4"}}, "",
               "microbatch 0 must run unit 1 first"},
        Broken{"OffloadTwice", kCopies, {{"14", "offload_activation block=1 mb=0"}}, "", "was offloaded already"},
        Broken{"OffloadTooLate", kCopies, {{"7", "offload_activation block=2 mb=0 after=6"}}, "",
               "microbatch 0 must run unit 2 first"},
        Broken{"OffloadOfUsed", kCopies, {{"14", "offload_activation block=2 mb=0 after=13"}}, "",
               "was used by its backward already"},
        Broken{"OffloadUnordered", kCopies, {{"7", "offload_activation block=1 mb=0"}}, "",
               "it must wait for the forward that uses"},
        Broken{"PrefetchOfNothing", kCopies, {{"7", "prefetch_activation block=1 mb=0 slot=0 after=6"}}, "",
               "is not in host memory"},
        Broken{"NeverPrefetched", kCopies, {{"14", "zero_grad block=1 grad=1"}}, "", "the input of unit 1 is in host memory"},
        Broken{"UseBeforePrefetch", kCopies, {{"15", "recompute block=1 mb=0 buffer=1"}}, "",
               "it must wait for the prefetch of the input"},
        Broken{"NoSlot", kCopies, {{"14", "prefetch_activation block=1 mb=0 slot=2"}}, "",
               "slot 2 does not exist; the program has 2"},
        Broken{"SlotInUse", kSlots, {{"12", "prefetch_activation block=1 mb=0-1 slot=0 after=11"}}, "",
               "slot 0 holds the input of unit 2, which nothing used yet"},
        Broken{"SlotStillRead", kSlots, {{"13", "prefetch_activation block=1 mb=0-1 slot=0"}}, "",
               "it must wait for the backward of unit 2, which uses slot 0"},
        Broken{"ParametersLate", kCopies, {{"0", "zero_grad block=0 grad=0"}}, "",
               "the parameters of unit 0 are in host memory; prefetch them into parameter buffer 0 first"},
        Broken{"ParametersElsewhere", kCopies, {{"2", "prefetch_parameters block=1 buffer=0"}}, "", "still holds unit 0"},
        Broken{"ParametersUnordered", kCopies, {{"1", "gather block=0 buffer=0 group=0"}}, "",
               "it must wait for the prefetch of the parameters"},
        Broken{"ParametersOverUsed", kOnHost, {{"7", "prefetch_parameters block=2 buffer=0"}}, "",
               "what comes into parameter buffer 0 must wait for its release"},
        Broken{"ParametersTwice", kCopies, {{"2", "prefetch_parameters block=0 buffer=0"}}, "", "still holds unit 0"},
        Broken{"ParametersNeverGathered", kCopies, {{"9", "release buffer=0"}}, "", "unit 2 was prefetched and never gathered"},
        Broken{"ParametersNotYetGathered", kCopies, {{"9", "zero_grad block=2 grad=0"}}, "",
               "parameter buffer 0 holds unit 2, not unit 2"},
        Broken{"GradientsTwice", kOnHost, {{"17", "offload_gradients block=1 grad=1"}}, "", "were offloaded already"},
        Broken{"GradientsUnsummed", kOnHost, {{"12", "zero_grad block=0 grad=1"}}, "", "holds no sum of the gradients of unit 2"},
        Broken{"GradientsUnordered", kOnHost, {{"13", "offload_gradients block=2 grad=0"}}, "",
               "it must wait for the reduction of unit 2"},
        Broken{"GradientsStay", kOnHost,
               {{"16", "zero_grad block=0 grad=1"}, {"17", "offload_gradients block=1 grad=1 after=15"}}, "",
               "gradient buffer 1 holds gradients"},
        Broken{"GradientsLate", kOnHost, {{"21", "prefetch_optimizer block=0 slot=0"}}, "",
               "the gradients of unit 0 are not in host memory yet"},
        Broken{"SumOverwritten", kOnHost,
               {{"16", "prefetch_parameters block=0 buffer=0 after=11"},
                {"17", "offload_gradients block=1 grad=1 after=15"},
                {"18", "gather block=0 buffer=0 group=0 after=16"},
                {"19", "backward block=0 mb=0 buffer=0 grad=1 after=18"}}, "",
               "must wait for its last reduction"},
        Broken{"OptimizerLate", kCopies, {{"26", "release buffer=0"}}, "",
               "the optimizer of unit 0 is in host memory; prefetch it first"},
        Broken{"OptimizerTwice", kCopies, {{"26", "prefetch_optimizer block=0-1 slot=1"}}, "", "unit 1 was stepped already"},
        Broken{"OptimizerUnordered", kOnHost, {{"24", "optimizer_step block=0 slot=0 after=22"}}, "",
               "it must wait for the prefetch of the optimizer"},
        Broken{"OptimizerElsewhere", kCopies, {{"23", "optimizer_step block=1-2 slot=0 after=17,20"}}, "",
               "the optimizer of unit 1 is in slot 1, not 0"},
        Broken{"OptimizerInUse", kCopies, {{"24", "prefetch_optimizer block=0 slot=1"}}, "",
               "slot 1 holds the optimizer of unit 1, which is not offloaded yet"},
        Broken{"OptimizerOnInput", kCopies, {{"15", "prefetch_optimizer block=1-2 slot=0"}}, "",
               "slot 0 holds the input of unit 1, which nothing used yet"},
        Broken{"OffloadBeforeStep", kCopies, {{"23", "offload_optimizer block=1-2 slot=1 after=17,20"}}, "", "was not stepped"},
        Broken{"OffloadBesideStep", kCopies, {{"24", "offload_optimizer block=1-2 slot=1"}}, "",
               "it must wait for the step of unit 1"},
        Broken{"OffloadFromElsewhere", kCopies, {{"24", "offload_optimizer block=1-2 slot=0 after=23"}}, "",
               "the optimizer of unit 1 is in slot 1, not 0"},
        Broken{"StateOffloadTwice", kCopies, {{"26", "offload_optimizer block=1-2 slot=1"}}, "", "was offloaded already"},
        Broken{"NeverOffloaded", kCopies, {{"28", "release buffer=0"}}, "",
               "the stepped optimizer of unit 0 never comes to host memory"},
        Broken{"NothingInHost", kSplitBackward, {}, "16 offload_optimizer block=0 slot=0 after=15\n",
               "its header does not offload parameters, gradients or optimizer"},
        Broken{"SlotOfNothing", kInTurn, {{"6", "optimizer_step block=1 slot=0 grad=0 after=5"}}, "", "it must name no slot"}),
    NameOfBroken);

INSTANTIATE_TEST_SUITE_P(
    StepsByName, BrokenWideTest,
    testing::Values(
        Broken{"Twice", kWide, {{"23", "optimizer_step block=0"}}, "", "unit 0 was stepped already"},
        Broken{"BesideAll", kWide, {{"23", "optimizer_step"}}, "", "the optimizer steps once"},
        Broken{"AfterAll", kSplitBackward, {}, "16 optimizer_step block=0\n", "the optimizer steps once"},
        Broken{"Never", kWide, {{"23", "release buffer=0"}}, "", "at its end: unit 4 is never stepped"},
        Broken{"BeforeReduction", kWide, {{"20", "optimizer_step block=0-3 after=16"}}, "",
               "it must wait for the reduction of unit 0"},
        Broken{"Unreduced", kWide, {{"16", "optimizer_step block=1-3 after=15"}}, "", "the gradients of unit 1 were not reduced"},
        Broken{"BesideScalars", kWide, {{"22", "optimizer_step block=0 after=19"}}, "",
               "the optimizer must wait for reduce_scalars"},
        Broken{"NotHeld", kFollower, {{"17", "optimizer_step block=1-3 after=16"}}, "", "the rank does not hold unit 3"},
        Broken{"GatherAfter", kCopies, {{"26", "prefetch_parameters block=1 buffer=1"}}, "",
               "it must stand before reduce_scalars"},
        Broken{"SumTakenTwice", kInTurn, {{"7", "optimizer_step block=1 grad=0"}}, "", "unit 1 was stepped already"},
        Broken{"SumElsewhere", kInTurn, {{"6", "optimizer_step block=1 grad=1 after=5"}}, "", "gradient buffer 1 does not exist"},
        Broken{"SumUnordered", kInTurn, {{"6", "optimizer_step block=1 grad=0"}}, "", "it must wait for the reduction of unit 1"},
        Broken{"SumOfAll", kInTurn, {{"9", "optimizer_step grad=0 after=8"}}, "", "the optimizer steps once"},

        Broken{"WriteAfter", kWide, {{"21", "zero_grad block=1 grad=1 after=20"}}, "", "unit 1 was stepped already"}),
    NameOfBroken);
// clang-format on

TEST(EngineSubsetTest, RefusesWhatItDoesNotRunByName) {
  const auto refusal = [](const char* base, const std::map<std::string, std::string>& edits = {}) {
    return std::string(RunsInEngine(*ParseProgram(Edited(base, edits))).message());
  };
  for (const char* text : kValidTexts) EXPECT_EQ(RunsInEngine(*ParseProgram(text)), absl::OkStatus());
  EXPECT_EQ(RunsInEngine(*ParseProgram(kBeforeTheGroup)), absl::OkStatus());
  for (const char* text : {kWide, kSplitBackward, kLeader, kFollower, kRows, kCopies})
    EXPECT_EQ(RunsInEngine(*ParseProgram(text)).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refusal(kRows), "program of rank 0, instruction 0 (broadcast): the engine does not run the operation broadcast yet");
  EXPECT_EQ(refusal(kFollower),
            "program of rank 2, instruction 3 (forward): the engine does not run a tensor-parallel group in forward yet");
  EXPECT_EQ(refusal(kFollower, {{"3", "forward block=1 mb=0 segment=mlp buffer=0 keep=all after=2"},
                                {"13", "backward block=1 mb=0 segment=mlp buffer=0 grad=0 after=12"}}),
            "")
      << "segments, sums and broadcasts run";
  EXPECT_EQ(refusal(kFollower, {{"3", "recompute block=1 mb=0 segment=mlp buffer=0"}}),
            "program of rank 2, instruction 3 (recompute): the engine does not run a segment of a unit in recompute yet");
  EXPECT_EQ(refusal(kFollower, {{"3", "backward block=1 mb=0 segment=logits buffer=0 grad=0"}}),
            "program of rank 2, instruction 3 (backward): the engine does not run a segment of the head in backward yet");
  EXPECT_EQ(refusal(kSplitBackward), "program of rank 0: the engine does not run a buffer of 2 units at once yet");
  const std::string of_first = "program of rank 0, instruction 1 (forward): the engine does not run ";
  const auto forward = [&](const std::string& fields) { return refusal(kTraining, {{"1", "forward " + fields}}); };
  EXPECT_EQ(forward("block=0-1 mb=0 buffer=0 keep=all after=0"), of_first + "a range of units in forward yet");
  EXPECT_EQ(forward("block=0 mb=0-1 buffer=0 keep=all after=0"), of_first + "a range of microbatches in forward yet");
  EXPECT_EQ(forward("block=1 mb=0 segment=mlp buffer=0 keep=all"), "");
  EXPECT_EQ(forward("block=1 mb=0 buffer=0 keep=boundary ops=qkv"), "");
  EXPECT_EQ(forward("block=1 mb=0 buffer=0 keep=all tp=0"), of_first + "a tensor-parallel group in forward yet");
  EXPECT_EQ(refusal(kTraining, {{"0", "gather block=0 elements=5@0 buffer=0 group=0"}}), "");
  EXPECT_EQ(forward("block=0 mb=0 buffer=0 keep=all after=0"), "");
  EXPECT_EQ(refusal(kTraining, {{"2", "offload_activation block=1 mb=0"}, {"3", "prefetch_activation block=1 mb=0 slot=0"}}), "");
  EXPECT_THAT(refusal(kTraining, {{"2", "offload_activation block=1 mb=0-1"}}),
              HasSubstr("a range of microbatches in offload_activation"));
  EXPECT_THAT(refusal(kTraining, {{"2", "prefetch_activation block=1-2 mb=0 slot=0"}}),
              HasSubstr("a range of units in prefetch_activation"));
  EXPECT_EQ(refusal(kInTurn), "") << "steps of named units run, one by one";
  EXPECT_THAT(refusal(kCopies), HasSubstr("instruction 17 (prefetch_optimizer): the engine does not run a range of units"));
  EXPECT_THAT(refusal(kTraining, {{"2", "prefetch_parameters block=0-1 buffer=0"}}), HasSubstr("a range of units in prefetch_p"));
  EXPECT_THAT(refusal(kTraining, {{"2", "offload_gradients block=0-1 grad=0"}}), HasSubstr("a range of units in offload_g"));
  EXPECT_THAT(refusal(kTraining, {{"2", "offload_optimizer block=0-1 slot=0"}}), HasSubstr("a range of units in offload_o"));
  EXPECT_THAT(refusal(kTraining, {{"21", "optimizer_step block=0-1"}}), HasSubstr("a range of units in optimizer_step"));
}

}  // namespace
}  // namespace motley
