#include "planner/answers/measured_step.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/graph/program_graph.h"
#include "planner/live/job_request.h"
#include "planner/live/planner.h"
#include "planner/plan/ownership.h"
#include "planner/plan/placement.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

class MeasuredStepTest : public testing::TestWithParam<const char*> {
 protected:
  MeasuredStepTest() {
    PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 32);
    input.config.planner.strategy = GetParam();
    job_ = *SettingOf(input);
    result_ = *MakePlan(input);
    const ProgramGraph graph = *GraphOfPrograms(*job_.setting, result_.plan, result_.programs);
    spans_ = SpansByRank(result_.programs, graph.task_of, *::motley::planner::Run(graph.graph));
    seconds_.assign(spans_.size(), result_.plan.predicted.step_seconds);
  }
  absl::StatusOr<MeasuredStep> Compare() const {
    return CompareStep(*job_.setting, result_.plan, result_.programs, spans_, seconds_);
  }

  JobSetting job_;
  PlanResult result_;
  RankSpans spans_;  // as simulated
  std::vector<double> seconds_;
};

TEST_P(MeasuredStepTest, WhatWasSimulatedDiffersInNothing) {
  const auto step = Compare();
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_FALSE(step->differences.empty());
  for (const StepDifference& d : step->differences) EXPECT_NEAR(d.difference(), 0, 1e-7) << d.device << " " << d.what;
  for (size_t t = 0; t < step->graph.tasks.size(); ++t) {
    EXPECT_NEAR(ToSeconds(step->measured.spans[t].begin), ToSeconds(step->simulated.spans[t].begin), 1e-7);
    EXPECT_NEAR(ToSeconds(step->measured.spans[t].end), ToSeconds(step->simulated.spans[t].end), 1e-7);
  }
  // Also what the ranks were told to expect.
  for (size_t r = 0; r < spans_.size(); ++r) {
    EXPECT_EQ(step->simulated_lanes[r].busy, result_.lanes[r].busy);
    EXPECT_NEAR(step->simulated_lanes[r].bubble, result_.lanes[r].bubble, 1e-9);
  }
}

TEST_P(MeasuredStepTest, ClocksThatBeginElsewhereAreLaidTogether) {
  const absl::Duration shift = absl::Milliseconds(3);
  for (InstructionSpan& span : spans_[1]) span = {span.begin + shift, span.end + shift};
  const auto step = Compare();
  ASSERT_TRUE(step.ok()) << step.status();
  // All others are moved; nothing lasts longer.
  for (size_t t = 0; t < step->graph.tasks.size(); ++t)
    EXPECT_NEAR(ToSeconds(step->measured.spans[t].begin - step->simulated.spans[t].begin), 3e-3, 1e-7);
}

TEST_P(MeasuredStepTest, ASlowDeviceStandsFirst) {
  const Program& program = result_.programs[0];
  for (size_t i = 0; i < spans_[0].size(); ++i) {
    if (std::holds_alternative<Backward>(program.instructions[i].op)) spans_[0][i].end += absl::Seconds(1);
  }
  const auto step = Compare();
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->differences[0].what, "backward");
  EXPECT_GT(step->differences[0].difference(), 1);
}

TEST_P(MeasuredStepTest, SpansOfOtherProgramsAreRefused) {
  spans_[0].pop_back();
  const auto shorter = Compare();
  EXPECT_THAT(std::string(shorter.status().message()), HasSubstr("rank 0 measured"));
  spans_.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(Compare().status()));
}

INSTANTIATE_TEST_SUITE_P(Strategies, MeasuredStepTest, testing::Values("cephalo", "even", "megatron", "zorse"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace motley::planner
