// The rules of shards: what a rank keeps of a unit beside its stage's other ranks, where other pipelines share the unit, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/program/program_index.h"
#include "tests/common/program/broken_program.h"

namespace motley {
namespace {

// Ranks 0 and 1 share out both units; rank 2 is another pipeline, which has what rank 0 keeps.
constexpr char kSharded[] =
    "program 6 training rank 0 of 3 units 2 microbatches 1@0\n"
    "holds 0,1\n"
    "groups 0,1 0,2\n"
    "parameters 50/0/0,30/1/0,100,60\n"
    "gradients 50/0/0,30/1/0,100,60\n"
    "offloads -\n"
    "slots -\n"
    "0 gather block=0 elements=50@0 buffer=0 group=1\n"
    "1 gather block=0 buffer=2 group=0\n"
    "2 gather block=1 elements=30@0 buffer=1 group=1\n"
    "3 gather block=1 buffer=3 group=0\n"
    "4 forward block=0 mb=0 buffer=2 keep=all after=1\n"
    "5 forward block=1 mb=0 buffer=3 keep=all after=3\n"
    "6 backward block=1 mb=0 buffer=3 grad=3\n"
    "7 reduce_scatter block=1 grad=3 group=0 after=6\n"
    "8 backward block=0 mb=0 buffer=2 grad=2\n"
    "9 reduce_scatter block=0 grad=2 group=0 after=8\n"
    "10 reduce_scatter block=1 elements=30@0 grad=1 group=1\n"
    "11 reduce_scatter block=0 elements=50@0 grad=0 group=1\n"
    "12 reduce_scalars\n"
    "13 optimizer_step after=12\n";

TEST(ShardTest, AProgramWithShardsIsValidAndComesBackFromItsText) {
  const auto program = ParseProgram(kSharded);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Validate(*program), absl::OkStatus());
  EXPECT_EQ(ToText(*program), kSharded);
  EXPECT_EQ(program->parameter_buffers[1], (UnitBuffer{.elements = 30, .home_of = 1, .num_units = 1, .shard_group = 0}));
  EXPECT_EQ(ProgramIndex(*program).elements, (std::vector<int64_t>{0, 0})) << "whole units come in one piece";
}

// Of the embedding the rank keeps nothing, so no other pipeline comes to it. Its stage gathers and sums it all the same.
TEST(ShardTest, ARankMayKeepNothing) {
  const auto program = ParseProgram(
      "program 6 training rank 0 of 3 units 2 microbatches 1@0\n"
      "holds 0,1\n"
      "groups 0,1 0,2\n"
      "parameters 0/0/0,30/1/0,100,60\n"
      "gradients 0/0/0,30/1/0,100,60\n"
      "offloads -\n"
      "slots -\n"
      "0 gather block=0 buffer=2 group=0\n"
      "1 gather block=1 elements=30@0 buffer=1 group=1\n"
      "2 gather block=1 buffer=3 group=0\n"
      "3 forward block=0 mb=0 buffer=2 keep=all after=0\n"
      "4 forward block=1 mb=0 buffer=3 keep=all after=2\n"
      "5 backward block=1 mb=0 buffer=3 grad=3\n"
      "6 reduce_scatter block=1 grad=3 group=0 after=5\n"
      "7 backward block=0 mb=0 buffer=2 grad=2\n"
      "8 reduce_scatter block=0 grad=2 group=0 after=7\n"
      "9 reduce_scatter block=1 elements=30@0 grad=1 group=1\n"
      "10 reduce_scalars\n"
      "11 optimizer_step after=10\n");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Validate(*program), absl::OkStatus());
}

class BrokenShardTest : public testing::TestWithParam<Broken> {};
TEST_P(BrokenShardTest, IsRefusedByItsRule) { ExpectRefused(GetParam()); }

// clang-format off
INSTANTIATE_TEST_SUITE_P(
    Shards, BrokenShardTest,
    testing::Values(
        Broken{"ComputesWithIt", kSharded, {{"4", "forward block=0 mb=0 buffer=0 keep=all after=1"}}, "",
               "parameter buffer 0 is a shard; gather the unit into another"},
        Broken{"AddsToIt", kSharded, {{"8", "backward block=0 mb=0 buffer=2 grad=0"}}, "",
               "gradient buffer 0 is a shard, to which sums alone are added"},
        Broken{"ComesBeforeIt", kSharded, {{"0", "gather block=0 buffer=2 group=0"}}, "",
               "parameter buffer 0 holds nothing, not unit 0; gather it first"},
        Broken{"ComesFromAPartOfIt", kSharded, {{"0", "gather block=0 elements=40@0 buffer=0 group=1"}}, "",
               "parameter buffer 0 holds 40 of the 50 elements of unit 0; gather the rest first"},
        Broken{"MoreThanItHas", kSharded, {{"0", "gather block=0 elements=60@0 buffer=0 group=1"}}, "",
               "elements to 60: parameter buffer 0 is a shard of 50"},
        Broken{"ComesFromOthers", kSharded, {{"1", "gather block=0 buffer=2 group=1"}}, "",
               "unit 0 is shared out among group 0, in which rank 2 of group 1 is not"},
        Broken{"GoesToOthers", kSharded, {{"7", "reduce_scatter block=1 grad=3 group=1 after=6"}}, "",
               "unit 1 is shared out among group 0, in which rank 2 of group 1 is not"},
        Broken{"SummedBeforeItsSums", kSharded, {{"9", "reduce_scatter block=0 elements=50@0 grad=0 group=1"}}, "",
               "gradient buffer 0 holds no gradients of unit 0"},
        Broken{"SumsBehindItsOwn", kSharded, {{"10", "reduce_scatter block=0 elements=50@0 grad=0 group=1"},
                                              {"11", "reduce_scatter block=0 elements=50@0 grad=0 group=1"}}, "",
               "gradient buffer 0 holds no gradients of unit 0"},
        Broken{"NeverSummed", kSharded, {{"11", "release buffer=3 after=3"}}, "",
               "at its end: gradient buffer 0 holds gradients of unit 0 that were not reduced"},
        Broken{"NoSuchGroup", kSharded, {{"parameters", "50/0/2,30/1/0,100,60"}}, "",
               "header: parameter buffer 0 is a shard among group 2, of which there are 2"},
        Broken{"GroupOfOthers", kSharded, {{"groups", "1,2 0,2"}}, "",
               "header: parameter buffer 0 is a shard among group 0, in which the rank is not"},
        Broken{"OfNoUnit", kSharded, {{"gradients", "50/-1/0,30/1/0,100,60"}}, "",
               "header: gradient buffer 0 is a shard, which is of one unit"},
        Broken{"OfLessThanNothing", kSharded, {{"gradients", "-1/0/0,30/1/0,100,60"}}, "",
               "header: gradient buffer 0 must have a size of at least 0, got -1"}),
    NameOfBroken);
// clang-format on

}  // namespace
}  // namespace motley
