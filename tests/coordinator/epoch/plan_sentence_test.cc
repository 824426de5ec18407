#include "coordinator/epoch/plan_sentence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

planner::UnitPlan UnitOn(const std::vector<std::string>& devices) {
  planner::UnitPlan unit;
  for (const std::string& device : devices) unit.ranks.emplace_back().device = DeviceId(device);
  return unit;
}

// A unit of several ranks takes as many devices.
TEST(PlanSentenceTest, SpeaksOfDevicesAndNotOfUnits) {
  Prepared prepared;
  prepared.plan.plan.strategy = "manual";
  planner::PipelinePlan& pipeline = prepared.plan.plan.pipelines.emplace_back();
  pipeline.stages.emplace_back().units = {UnitOn({"a/gpu0", "a/gpu1"})};
  EXPECT_THAT(PlanSentence(prepared), testing::StartsWith("manual on 2 devices: "));
  pipeline.stages.emplace_back().units = {UnitOn({"b/gpu0"}), UnitOn({"b/gpu1"})};
  EXPECT_THAT(PlanSentence(prepared), testing::StartsWith("manual on 4 devices: "));
}

TEST(PlanSentenceTest, SaysWhereTheWeightsComeFrom) {
  Prepared prepared;
  EXPECT_THAT(PlanSentence(prepared), testing::EndsWith("; from the initial weights"));
  prepared.resume_from = "/c/step-7";
  prepared.start_step = 7;
  EXPECT_THAT(PlanSentence(prepared), testing::EndsWith("; from step 7 (/c/step-7)"));
  prepared.adopted = "0f3c";
  EXPECT_THAT(PlanSentence(prepared), testing::EndsWith("; from step 7 (/c/step-7, which another job made and this one adopts)"));
  prepared.adopted = "";
  prepared.plan.plan.unused.push_back({DeviceId("a/gpu1"), "too slow"});
  EXPECT_THAT(PlanSentence(prepared), testing::EndsWith("; a/gpu1 is not used: too slow"));
}

}  // namespace
}  // namespace motley::coordinator
