#include "common/program/step_spans.h"

#include "gtest/gtest.h"
#include "tests/common/program/program_texts.h"

namespace motley {
namespace {

InstructionSpan Between(double begin, double end) { return {absl::Seconds(begin), absl::Seconds(end)}; }

double Sum(const LaneSeconds& s) { return s.busy[0] + s.collective + s.hand_over + s.bubble + s.host; }

// A stage behind another: a gather, two microbatches that are received, the scalars, the optimizer.
Program Stage() {
  Program program;
  program.instructions = {{Gather{}, {}},   {ReceiveActivation{}, {}}, {Forward{}, {0, 1}},   {ReceiveActivation{}, {}},
                          {Forward{}, {3}}, {ReduceScalars{}, {4}},    {OptimizerStep{}, {5}}};
  return program;
}

TEST(StepSpansTest, SaysWhatTheComputeLaneWaitedFor) {
  // The first microbatch is there before the weights. The second is sent late, and then is half a second on its way.
  const std::vector<InstructionSpan> spans = {Between(0.25, 1), Between(0.5, 0.75), Between(1, 3),  Between(4, 4.5),
                                              Between(4.5, 6),  Between(6, 7),      Between(7, 7.5)};
  const LaneSeconds s = SecondsByLane(Stage(), spans, absl::Seconds(8));
  EXPECT_DOUBLE_EQ(s.busy[static_cast<size_t>(Lane::kCompute)], 4);
  EXPECT_DOUBLE_EQ(s.busy[static_cast<size_t>(Lane::kCollective)], 1.75);
  EXPECT_DOUBLE_EQ(s.busy[static_cast<size_t>(Lane::kReceive)], 0.75);
  EXPECT_DOUBLE_EQ(s.collective, 0.75);  // the gather; before it nothing was under way
  EXPECT_DOUBLE_EQ(s.hand_over, 0.5);
  EXPECT_DOUBLE_EQ(s.bubble, 0.25 + 1 + 1);  // before the gather, before the sender had it, and for the others' scalars
  EXPECT_DOUBLE_EQ(s.host, 0.5);             // after the optimizer
  EXPECT_DOUBLE_EQ(Sum(s), 8);
}

TEST(StepSpansTest, ADelayBehindWhatWasAwaitedIsTheHosts) {
  const std::vector<InstructionSpan> spans = {Between(0, 1),    Between(0, 0.5), Between(1.5, 3), Between(1, 2),
                                              Between(3.25, 4), Between(4, 4),   Between(4, 4)};
  const LaneSeconds s = SecondsByLane(Stage(), spans, absl::Seconds(4));
  EXPECT_DOUBLE_EQ(s.collective, 1);
  EXPECT_DOUBLE_EQ(s.host, 0.5 + 0.25);  // the second microbatch was there long before
  EXPECT_DOUBLE_EQ(s.bubble, 0);
  EXPECT_DOUBLE_EQ(Sum(s), 4);
}

TEST(StepSpansTest, PartsAddUpToTheStep) {
  for (const char* text : {kTraining, kTied, kIdle, kFirstStage, kMiddleStage, kLastStage}) {
    const Program program = *ParseProgram(text);
    std::vector<InstructionSpan> spans;
    std::array<absl::Duration, kNumLanes> free{};
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      absl::Duration& at = free[static_cast<size_t>(LaneOf(program.instructions[i].op))];
      for (const int32_t before : program.instructions[i].after) at = std::max(at, spans[before].end);
      at += absl::Milliseconds(i % 3);  // the host is late now and then
      spans.push_back({at, at + absl::Milliseconds(1 + i * 7 % 5)});
      at = spans.back().end;
    }
    const absl::Duration step = *std::max_element(free.begin(), free.end()) + absl::Milliseconds(3);
    EXPECT_NEAR(Sum(SecondsByLane(program, spans, step)), absl::ToDoubleSeconds(step), 1e-9) << text;
  }
}

TEST(StepSpansTest, ARankWithoutSamplesOnlyWaits) {
  const LaneSeconds s = SecondsByLane(Program(), {}, absl::Seconds(2));
  EXPECT_DOUBLE_EQ(s.host, 2);
  EXPECT_DOUBLE_EQ(Sum(s), 2);
}

}  // namespace
}  // namespace motley
