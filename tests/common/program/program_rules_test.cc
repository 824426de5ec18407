// Every rule of docs/program.md has a program here that breaks it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>

#include "common/program/program.h"
#include "tests/common/program/program_texts.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

struct Broken {
  const char* name;
  const char* base;
  std::map<std::string, std::string> edits;
  std::string appended;
  const char* message;
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class BrokenProgramTest : public testing::TestWithParam<Broken> {};

TEST_P(BrokenProgramTest, IsRefusedByItsRule) {
  const Broken& broken = GetParam();
  const auto program = ParseProgram(Edited(broken.base, broken.edits, broken.appended));
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status status = Validate(*program);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("program of rank "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(broken.message));
}

std::string NameOf(const testing::TestParamInfo<Broken>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Header, BrokenProgramTest,
    testing::Values(
        Broken{
            "RankOutside", kTraining, {{"program", "1 training rank 2 of 2 units 3 microbatches 2"}}, "", "header: rank must be"},
        Broken{"RankNegative",
               kTraining,
               {{"program", "1 training rank -1 of 2 units 3 microbatches 2"}},
               "",
               "header: rank must be"},
        Broken{"NoWorld", kTraining, {{"program", "1 training rank 0 of 0 units 3 microbatches 2"}}, "", "header: rank must be"},
        Broken{"TooFewUnits",
               kTraining,
               {{"program", "1 training rank 0 of 2 units 1 microbatches 2"}},
               "",
               "header: units must be"},
        Broken{"TooManyUnits",
               kTraining,
               {{"program", "1 training rank 0 of 2 units 2000000 microbatches -"}},
               "",
               "header: units must"},
        Broken{"TooManyMicrobatches",
               kTraining,
               {{"program", "1 training rank 0 of 2 units 3 microbatches 1,1,1,1,1,1,1,1"}},
               "",
               "22 instructions are fewer than 8 microbatches x 3 units"},
        Broken{"EmptyMicrobatch",
               kTraining,
               {{"program", "1 training rank 0 of 2 units 3 microbatches 0"}},
               "",
               "header: microbatch 0"},
        Broken{"EmptyParameterBuffer", kTraining, {{"parameters", "0,1"}}, "", "header: parameter buffer 0 must have a size"},
        Broken{"EmptyGradientBuffer", kTraining, {{"gradients", "1,-1"}}, "", "header: gradient buffer 1 must have a size"},
        Broken{"AfterItself", kTraining, {{"5", "release buffer=1 after=5"}}, "", "instruction 5 (release): `after` must be"},
        Broken{"AfterLater", kTraining, {{"5", "release buffer=1 after=6"}}, "", "name earlier instructions, got 6"},
        Broken{"AfterNegative", kTraining, {{"5", "release buffer=1 after=-1"}}, "", "name earlier instructions, got -1"},
        Broken{"AfterUnsorted",
               kTraining,
               {{"17", "backward unit=0 mb=0 buffer=0 grad=1 after=15,11"}},
               "",
               "`after` must be ascending"},
        Broken{"AfterTwice", kTraining, {{"5", "release buffer=1 after=3,3"}}, "", "`after` must be ascending"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Indices, BrokenProgramTest,
    testing::Values(
        Broken{"GatherUnit", kTraining, {{"0", "gather unit=3 buffer=0"}}, "", "instruction 0 (gather): unit 3 does not exist"},
        Broken{"GatherBuffer",
               kTraining,
               {{"0", "gather unit=0 buffer=2"}},
               "",
               "parameter buffer 2 does not exist; the program has 2"},
        Broken{"ReleaseBuffer", kTraining, {{"2", "release buffer=-1"}}, "", "parameter buffer -1 does not exist"},
        Broken{"ForwardUnit", kTraining, {{"1", "forward unit=-7 mb=0 buffer=0 keep=all after=0"}}, "", "unit -7 does not exist"},
        Broken{"ForwardMicrobatch",
               kTraining,
               {{"1", "forward unit=0 mb=1 buffer=0 keep=all after=0"}},
               "",
               "microbatch 1 does not exist"},
        Broken{"ForwardBuffer",
               kTraining,
               {{"1", "forward unit=0 mb=0 buffer=9 keep=all"}},
               "",
               "parameter buffer 9 does not exist"},
        Broken{"ForwardTied",
               kTied,
               {{"3", "forward unit=1 mb=0 buffer=1 tied=4 keep=all after=1"}},
               "",
               "parameter buffer 4 does not"},
        Broken{
            "RecomputeMicrobatch", kTraining, {{"12", "recompute unit=1 mb=-1 buffer=1 after=10"}}, "", "microbatch -1 does not"},
        Broken{"BackwardGradient",
               kTraining,
               {{"8", "backward unit=2 mb=0 buffer=0 grad=2"}},
               "",
               "gradient buffer 2 does not exist"},
        Broken{"BackwardTiedGradient",
               kTied,
               {{"4", "backward unit=1 mb=0 buffer=1 tied=0 grad=0 tied_grad=5"}},
               "",
               "gradient buffer 5 does not exist"},
        Broken{"ZeroUnit", kIdle, {{"3", "zero_grad unit=2 grad=1"}}, "", "unit 2 does not exist"},
        Broken{"ZeroGradient", kIdle, {{"3", "zero_grad unit=1 grad=2"}}, "", "gradient buffer 2 does not exist"},
        Broken{"ReduceUnit", kTraining, {{"11", "reduce_scatter unit=-1 grad=1 after=8"}}, "", "unit -1 does not exist"},
        Broken{"ReduceGradient",
               kTraining,
               {{"11", "reduce_scatter unit=2 grad=-1 after=8"}},
               "",
               "gradient buffer -1 does not exist"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Parameters, BrokenProgramTest,
    testing::Values(
        Broken{"GatherOverTenant",
               kTraining,
               {{"3", "gather unit=1 buffer=0"}, {"2", "release buffer=0"}, {"5", "release buffer=0"}},
               "",
               "instruction 3 (gather): a gather into parameter buffer 0 must wait for its release"},
        Broken{"GatherIntoFullBuffer", kTied, {{"1", "gather unit=1 buffer=0"}}, "", "still holds unit 0; release it first"},
        Broken{"GatherBeforeRelease",
               kTraining,
               {{"6", "gather unit=2 buffer=0"}},
               "",
               "parameter buffer 0 must wait for its release; no chain of lane order and `after` leads from instruction 2 here"},
        Broken{"ReleaseOfNothing",
               kTraining,
               {{"5", "release buffer=0"}},
               "",
               "instruction 5 (release): parameter buffer 0 holds nothing"},
        Broken{"ReleaseBeforeGather",
               kIdle,
               {{"1", "release buffer=0"}},
               "",
               "the release of parameter buffer 0 must wait for its gather"},
        Broken{"UseOfNothing",
               kTied,
               {{"0", "gather unit=1 buffer=0"}, {"1", "gather unit=1 buffer=1"}},
               "",
               "parameter buffer 0 holds unit 1, not unit 0; gather it first"},
        Broken{"UseAfterRelease",
               kTraining,
               {{"7", "release buffer=0 after=6"}},
               "",
               "instruction 8 (backward): parameter buffer 0 holds nothing, not unit 2"},
        Broken{"ForwardBeforeGather",
               kTraining,
               {{"4", "forward unit=1 mb=0 buffer=1 keep=boundary"}},
               "",
               "instruction 4 (forward): use of unit 1 must wait for its gather"},
        Broken{"RecomputeBeforeGather",
               kTraining,
               {{"12", "recompute unit=1 mb=0 buffer=1"}},
               "",
               "use of unit 1 must wait for its gather"},
        Broken{"BackwardBeforeGather",
               kTraining,
               {{"17", "backward unit=0 mb=0 buffer=0 grad=1 after=11"}},
               "",
               "instruction 17 (backward): use of unit 0 must wait for its gather"},
        Broken{"TiedBeforeGather",
               kTied,
               {{"0", "gather unit=1 buffer=1"}, {"1", "gather unit=0 buffer=0"}, {"2", "forward unit=0 mb=0 buffer=0 keep=all"}},
               "",
               "use of unit 0 must wait for its gather"},
        Broken{"TiedOutsideTheHead",
               kTraining,
               {{"4", "forward unit=1 mb=0 buffer=1 tied=0 keep=boundary after=3"}},
               "",
               "only the head may name a tied buffer"},
        Broken{"TiedNotEverywhere", kTied, {{"4", "backward unit=1 mb=0 buffer=1 grad=0"}}, "", "everywhere or nowhere"},
        Broken{"TiedWrongUnit",
               kTied,
               {{"3", "forward unit=1 mb=0 buffer=1 tied=1 keep=all after=1"}},
               "",
               "holds unit 1, not unit 0"},
        Broken{"TiedWithoutGradient", kTied, {{"4", "backward unit=1 mb=0 buffer=1 tied=0 grad=0"}}, "", "belong together"},
        Broken{
            "TiedGradientAlone", kTraining, {{"8", "backward unit=2 mb=0 buffer=0 grad=1 tied_grad=0"}}, "", "belong together"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Microbatches, BrokenProgramTest,
    testing::Values(
        Broken{"ForwardTwice",
               kTied,
               {{"3", "forward unit=0 mb=0 buffer=0 keep=all after=1"}},
               "",
               "unit 0 already ran microbatch 0 forward"},
        Broken{"ForwardSkipsAUnit",
               kTied,
               {{"2", "forward unit=1 mb=0 buffer=1 tied=0 keep=all after=1"}},
               "",
               "microbatch 0 must run unit 0 first"},
        Broken{"ForwardNever",
               kIdle,
               {{"program", "1 training rank 1 of 2 units 2 microbatches 3"}},
               "",
               "at its end: unit 0 never ran microbatch 0 forward"},
        Broken{"BackwardNever",
               kTied,
               {{"6", "zero_grad unit=0 grad=0 after=5"},
                {"7", "reduce_scatter unit=0 grad=0 after=6"},
                {"8", "reduce_scatter unit=0 grad=1"},
                {"9", "reduce_scalars"}},
               "10 optimizer_step after=9\n",
               "at its end: unit 0 never ran microbatch 0 backward"},
        Broken{"NothingKeptInTraining",
               kTraining,
               {{"1", "forward unit=0 mb=0 buffer=0 keep=nothing after=0"}},
               "",
               "a training program keeps all or the boundary"},
        Broken{"KeptInEvaluation",
               kEvaluation,
               {{"2", "forward unit=0 mb=0 buffer=0 keep=boundary after=0"}},
               "",
               "an evaluation program keeps nothing"},
        Broken{"RecomputeMissing",
               kTraining,
               {{"1", "forward unit=0 mb=0 buffer=0 keep=boundary after=0"}},
               "",
               "instruction 17 (backward): only the boundary was kept; recompute first"},
        Broken{"RecomputeOfKept",
               kTraining,
               {{"4", "forward unit=1 mb=0 buffer=1 keep=all after=3"}},
               "",
               "instruction 12 (recompute): recompute needs a forward that kept the boundary"},
        Broken{
            "RecomputeTwice", kTraining, {{"13", "recompute unit=1 mb=0 buffer=1"}}, "", "microbatch 0 was recomputed already"},
        Broken{"BackwardTwice",
               kTied,
               {{"6", "backward unit=1 mb=0 buffer=1 tied=0 grad=0 tied_grad=1 after=5"}},
               "",
               "unit 1 already ran microbatch 0 backward"},
        Broken{"BackwardOfHeadBeforeForward",
               kTied,
               {{"3", "backward unit=1 mb=0 buffer=1 tied=0 grad=0 tied_grad=1 after=1"}},
               "",
               "microbatch 0 must run the head forward first"},
        Broken{
            "BackwardOutOfOrder", kTied, {{"4", "backward unit=0 mb=0 buffer=0 grad=1"}}, "", "must run unit 1 backward first"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Gradients, BrokenProgramTest,
    testing::Values(Broken{"WriteOverOtherUnit",
                           kTied,
                           {{"4", "backward unit=1 mb=0 buffer=1 tied=0 grad=0 tied_grad=0"}},
                           "",
                           "gradient buffer 0 still holds unit 1; reduce it first"},
                    Broken{"WriteBeforeReduction",
                           kTraining,
                           {{"13", "backward unit=1 mb=0 buffer=1 grad=1"}},
                           "",
                           "the first write of gradient buffer 1 must wait for its last reduction"},
                    Broken{
                        "ZeroBeforeReduction", kIdle, {{"5", "zero_grad unit=0 grad=1"}}, "", "must wait for its last reduction"},
                    Broken{"ZeroOfGradients",
                           kIdle,
                           {{"4", "zero_grad unit=1 grad=1"}},
                           "",
                           "gradient buffer 1 holds gradients that were not reduced"},
                    Broken{"ReduceBeforeLastWrite",
                           kTraining,
                           {{"16", "reduce_scatter unit=1 grad=0 after=12"}},
                           "",
                           "the reduction of unit 1 must wait for its last backward"},
                    Broken{"ReduceOfOtherUnit",
                           kTraining,
                           {{"16", "reduce_scatter unit=2 grad=0 after=13"}},
                           "",
                           "holds no gradients of unit 2"},
                    Broken{"ReduceOfNothing",
                           kIdle,
                           {{"3", "reduce_scatter unit=1 grad=1"}},
                           "",
                           "gradient buffer 1 holds no gradients of unit 1"},
                    Broken{"GradientsLeftOver",
                           kIdle,
                           {{"6", "reduce_scalars"}, {"7", "optimizer_step after=6"}, {"8", "release buffer=0 after=2"}},
                           "",
                           "at its end: gradient buffer 0 holds gradients of unit 0 that were not reduced"},
                    Broken{"NeverReduced",
                           kIdle,
                           {{"5", "zero_grad unit=1 grad=0"}, {"6", "reduce_scatter unit=1 grad=0 after=5"}},
                           "",
                           "the gradients of unit 0 are never reduced; without samples, zero them first"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    EndOfStep, BrokenProgramTest,
    testing::Values(
        Broken{"ScalarsMissing", kEvaluation, {{"5", "release buffer=1 after=3"}}, "", "at its end: reduce_scalars is missing"},
        Broken{"ScalarsTwice", kEvaluation, {}, "6 reduce_scalars\n", "the scalars are reduced once"},
        Broken{"ScalarsBeforeLoss",
               kEvaluation,
               {{"5", "reduce_scalars after=2"}},
               "",
               "reduce_scalars must wait for the last loss"},
        Broken{"OptimizerNever",
               kTraining,
               {{"18", "gather unit=2 buffer=1 after=14"}, {"21", "release buffer=0"}},
               "",
               "at its end: optimizer_step is missing"},
        Broken{"OptimizerTwice", kTraining, {}, "22 optimizer_step after=20\n", "the optimizer steps once"},
        Broken{"OptimizerBeforeScalars", kIdle, {{"5", "optimizer_step"}}, "", "reduce_scalars must come first"},
        Broken{"OptimizerUnordered", kTraining, {{"21", "optimizer_step"}}, "", "the optimizer must wait for reduce_scalars"},
        Broken{"WorkAfterScalars", kTraining, {}, "22 gather unit=1 buffer=1 after=14\n", "it must stand before reduce_scalars"},
        Broken{"BackwardInEvaluation",
               kEvaluation,
               {{"4", "backward unit=1 mb=0 buffer=1 grad=0"}},
               "",
               "an evaluation program has only"},
        Broken{"RecomputeInEvaluation",
               kEvaluation,
               {{"4", "recompute unit=1 mb=0 buffer=1"}},
               "",
               "an evaluation program has only"},
        Broken{"ZeroInEvaluation", kEvaluation, {{"4", "zero_grad unit=1 grad=0"}}, "", "an evaluation program has only"},
        Broken{"ReduceInEvaluation", kEvaluation, {{"4", "reduce_scatter unit=1 grad=0"}}, "", "an evaluation program has only"},
        Broken{"OptimizerInEvaluation", kEvaluation, {}, "6 optimizer_step after=5\n", "an evaluation program has only"}),
    NameOf);

}  // namespace
}  // namespace motley
