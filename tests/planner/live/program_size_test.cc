#include "planner/live/program_size.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/live/planner.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

TEST(ProgramSizeTest, ANodesProgramsTogetherHaveALimit) {
  const PlanResult result = *MakePlan(MakeInput(SmallModel(), MixedDevices(), 32));
  std::map<NodeName, int64_t> bytes;
  size_t r = 0;
  int64_t most = 0;
  for (const UnitPlan& unit : result.plan.pipelines[0].stages[0].units) {
    int64_t& of_node = bytes[NodeOf(unit.ranks[0].device)];
    of_node += static_cast<int64_t>(ToText(result.programs[r++]).size());
    most = std::max(most, of_node);
  }
  ASSERT_LT(bytes.size(), result.programs.size()) << "some node has several ranks";
  EXPECT_TRUE(CheckProgramSizes(result.plan, {&result.programs}, most).ok());
  const absl::Status longer = CheckProgramSizes(result.plan, {&result.programs}, most - 1);
  EXPECT_TRUE(absl::IsResourceExhausted(longer)) << longer;
  EXPECT_THAT(std::string(longer.message()), HasSubstr("Larger microbatches"));
  EXPECT_FALSE(CheckProgramSizes(result.plan, {&result.programs, &result.evaluations}, most).ok());
  EXPECT_TRUE(CheckProgramSizes(result.plan, {&result.programs, &result.evaluations}).ok());
}

}  // namespace
}  // namespace motley::planner
