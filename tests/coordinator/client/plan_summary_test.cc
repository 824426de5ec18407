#include "coordinator/client/plan_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::client {
namespace {

using ::testing::HasSubstr;

planner::Plan Predicted() {
  planner::Plan plan;
  plan.predicted.step_seconds = 2;
  plan.predicted.tokens_per_second = 1000;
  plan.predicted.binding_constraint = "compute of n1/gpu0";
  plan.predicted.lower_bound_seconds = 1.6;
  plan.predicted.notes = {"found from cephalo (before climbing even led)", "found with 12 search nodes: 12 for climbing",
                          "L4: estimated from A10G"};
  return plan;
}

TEST(PlanSummary, FourLines) {
  EXPECT_EQ(SummaryText(Predicted(), {1.6, "compute: all at their best rates"}, {}, {}),
            "2.00 s a step, 1000 tokens/s\nbound by compute of n1/gpu0; idle 0.0 %\n"  // a CPU has no peak, so there is no MFU
            "25.0 % above the bound: no plan can be faster than 1.60 s (compute: all at their best rates)\nruns here: yes\n");
}

TEST(PlanSummary, SaysWhatItRestsOnAndWhyItDoesNotRun) {
  planner::Plan plan = Predicted();
  plan.predicted.estimated = true;
  plan.predicted.low_seconds = 1;
  plan.predicted.high_seconds = 3;
  plan.predicted.mfu = plan.predicted.hfu = 0.5;
  planner::RunsHere runs{absl::UnimplementedError("plan: zero_stage 2 given, the engine runs 3"), true};
  EXPECT_EQ(SummaryText(plan, {}, runs, {}),
            "2.00 s a step, 1000 tokens/s; between 1.00 s and 3.00 s in nine cases of ten, as it rests on estimates\n"
            "bound by compute of n1/gpu0; MFU 50.0 %, HFU 50.0 %, idle 0.0 %\nruns here: no (zero_stage 2 given, the engine runs "
            "3); --runnable plans what does\n");
  runs.another = false;
  EXPECT_THAT(SummaryText(plan, {}, runs, {}), HasSubstr("the engine runs 3)\n")) << "nobody knows of one that does";
}

TEST(PlanSummary, BeginsWithWhatAPublishedSystemKeepsTo) {
  planner::Plan plan = Predicted();
  planner::PlanRequest request;
  const auto first = [&](const std::string& strategy) {
    plan.strategy = strategy;
    const std::string text = SummaryText(plan, {}, {}, request);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first("zorse"), "2.00 s a step, 1000 tokens/s");
  request.fidelity = planner::Fidelity::kPublished;
  EXPECT_EQ(first("zorse"),
            "zorse as published (its own limits, and the state that the paper's system keeps): 2.00 s a step, 1000 tokens/s");
  EXPECT_EQ(first("auto"), "auto (no paper's system; state as papers' systems keep it): 2.00 s a step, 1000 tokens/s");
  request.runnable = true;
  EXPECT_EQ(first("zorse"),
            "zorse as published (its own limits, with the state that the engine keeps): 2.00 s a step, 1000 tokens/s");
  EXPECT_EQ(first("even"), "even (no paper's system): 2.00 s a step, 1000 tokens/s");
}

TEST(PlanSummary, TheSearchsOwnWordsAreForThoseWhoAsk) {
  EXPECT_EQ(NotesText(Predicted(), false), "note: L4: estimated from A10G\n");
  EXPECT_THAT(NotesText(Predicted(), true),
              HasSubstr("note: the search climbed from 'cephalo'; before that 'even' was the fastest\n"
                        "note: found with 12 search nodes: 12 for climbing\n"));
}

}  // namespace
}  // namespace motley::client
