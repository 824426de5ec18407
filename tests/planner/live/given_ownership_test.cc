// Who owns what in a job's plan by hand: ranges that it gives, or none sharded.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/live/planner.h"
#include "planner/plan/placement.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

TEST(GivenOwnershipTest, OwnersGivenByHandAreKept) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 6);
  std::string blocks;
  const std::vector<int64_t> elements = UnitElements(ParameterLayout(input.model));
  for (size_t block = 0; block < elements.size(); ++block) {
    const int64_t n = elements[block];
    absl::StrAppend(&blocks, block == 0 ? "" : ",", R"({"blocks":[[)", block, ",", block, R"(]],"ranges":[["n2/gpu0",0,)", n / 4,
                    R"(],["n1/gpu0",)", n / 4, ",", n / 2, R"(],["n2/gpu0",)", n / 2, ",", n, "]]}");
  }
  input.config.planner.plan_json = R"({"pipelines":[{"stages":[{"units":[
      {"ranks":[{"device":"n1/gpu0"}],"microbatches":[2,2]},{"ranks":[{"device":"n2/gpu0"}],"microbatches":[2]}]}]}],
      "ownership":[)" + blocks + "]}";
  const auto result = MakePlan(input);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->plan.ownership->Of(2),
            (OwnedRanges{{1, 0, elements[2] / 4}, {0, elements[2] / 4, elements[2] / 2}, {1, elements[2] / 2, elements[2]}}));
  EXPECT_NEAR(result->plan.pipelines[0].stages[0].units[1].ranks[0].shard_ratio, 0.75, 1e-3);
  std::string& json = input.config.planner.plan_json;
  json.replace(json.rfind(R"(["n2/gpu0",)") + 11, 0, "1");
  EXPECT_THAT(std::string(MakePlan(input).status().message()), HasSubstr("of block 5 are no range"));
}

TEST(GivenOwnershipTest, WhatNobodyShardsIsSteppedByOneRank) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 6);
  input.config.planner.plan_json = R"({"pipelines":[{"stages":[{"zero_stage":0,"units":[
      {"ranks":[{"device":"n1/gpu0"}],"microbatches":[4]},{"ranks":[{"device":"n2/gpu0"}],"microbatches":[2]}]}]}]})";
  const auto result = MakePlan(input);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->plan.pipelines[0].stages[0].zero_stage, 1);
  EXPECT_NEAR(result->plan.pipelines[0].stages[0].units[0].ranks[0].shard_ratio, 0.5, 1e-3);
}

}  // namespace
}  // namespace motley::planner
