// A job's plan by hand whose order must be mended: it has to fit as it runs.
#include "tests/planner/mended_plan.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/live/live_inputs.h"
#include "planner/live/planner.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// The second stage takes four microbatches of the first's at once.
PlannerInput Unequal(int64_t first_bytes) {
  PlannerInput input = MakeInput(SmallModel(false), {{"a/gpu0", "x", 1e9, first_bytes}, {"b/gpu0", "y", 3e9}}, 8);
  input.config.planner.memory_reserve = 0;
  input.config.data.validation_samples = 0;
  input.config.planner.plan_json = R"({"schedule":"1f1b","pipelines":[{"stages":[
      {"ministages":[[0,1]],"units":[{"ranks":[{"device":"a/gpu0","shard_ratio":1}],"microbatches":[1,1,1,1,1,1,1,1]}]},
      {"ministages":[[2,3]],"units":[{"ranks":[{"device":"b/gpu0","shard_ratio":1}],"microbatches":[4,4]}]}]}]})";
  return input;
}

TEST(MendedPlanTest, AJobsPlanMustFitAsMended) {
  constexpr int64_t kRoomy = int64_t{1} << 30;
  const auto roomy = MakePlan(Unequal(kRoomy));
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  const int64_t as_mended = roomy->plan.pipelines[0].stages[0].units[0].ranks[0].predicted.peak_bytes;
  const int64_t in_family_order = PeakInFamilyOrder(*SettingOf(Unequal(kRoomy))->setting, roomy->plan, 0);
  ASSERT_LT(in_family_order, as_mended);
  for (const int64_t bytes : {in_family_order, as_mended - 1}) {
    const absl::Status refused = MakePlan(Unequal(bytes)).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("the plan does not fit: a/gpu0 (x) needs")) << bytes;
  }
  EXPECT_TRUE(MakePlan(Unequal(as_mended)).ok());
}

}  // namespace
}  // namespace motley::planner
