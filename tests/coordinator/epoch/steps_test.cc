#include "coordinator/epoch/steps.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "coordinator/rpc/views.h"
#include "planner/plan/plan.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Of a job that one rank trains.
class StepsTest : public CoreTest {
 protected:
  void SetUp() override { AddRun("a").ranks.resize(1); }
  void Validate(int64_t step, double loss, std::optional<double> bits_per_byte) {
    StepReport report{JobId("a"), Epoch(1), 0, {}, 0, 0, {}};
    report.stats.step = step;
    report.stats.validation_loss = loss;
    report.stats.validation_bits_per_byte = bits_per_byte;
    OnStep(*core_, report);
  }
  v1::StepRecord Shown() const { return View(core_->state.jobs.at(JobId("a")).last_step); }
  std::string NewestLine() {
    const Ring<LogRecord>& lines = core_->journal.Logs(JobId("a"));
    int64_t found = 0;
    const LogRecord* line = lines.After(lines.newest() - 1, &found);
    return line == nullptr ? "" : line->text;
  }
};

TEST_F(StepsTest, AValidationIsShownWithItsPerplexityAndBits) {
  Validate(1, std::log(4), 1.5);
  EXPECT_DOUBLE_EQ(Shown().validation_perplexity(), 4);
  EXPECT_EQ(Shown().validation_bits_per_byte(), 1.5);
  EXPECT_THAT(NewestLine(), EndsWith("  validation loss 1.3863 (perplexity 4.00; 1.50 bits a byte)"));
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_job_validation_perplexity{job_id=\"a\"} 4\n"));
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_job_validation_bpb{job_id=\"a\"} 1.5\n"));
}

TEST_F(StepsTest, BitsThatAreNotKnownAreNowhere) {
  Validate(1, 2, std::nullopt);
  EXPECT_TRUE(Shown().has_validation_perplexity());
  EXPECT_FALSE(Shown().has_validation_bits_per_byte());
  EXPECT_THAT(NewestLine(), EndsWith("  validation loss 2.0000 (perplexity 7.39)"));
  EXPECT_THAT(registry_.ToText(), Not(HasSubstr("motley_job_validation_bpb{")));
}

TEST_F(StepsTest, APerplexityBeyondAllNumbersIsInfinite) {
  Validate(1, 1000, std::nullopt);
  EXPECT_EQ(Shown().validation_perplexity(), std::numeric_limits<double>::infinity());
  EXPECT_THAT(registry_.ToText(), HasSubstr("motley_job_validation_perplexity{job_id=\"a\"} +Inf\n"));
}

TEST_F(StepsTest, AStepWithoutAValidationHasNeither) {
  StepReport report{JobId("a"), Epoch(1), 0, {}, 0, 0, {}};
  report.stats.step = 1;
  OnStep(*core_, report);
  EXPECT_FALSE(Shown().has_validation_perplexity());
  EXPECT_FALSE(Shown().has_validation_bits_per_byte());
}

TEST_F(StepsTest, WhatWaitsInTheHostsMemoryIsOfAllRanks) {
  JobRun& run = *core_->state.run;
  run.ranks.resize(2);
  run.ranks[0].planned_host_bytes = 20;
  run.ranks[1].planned_host_bytes = 40;
  StepReport report{JobId("a"), Epoch(1), 1, {}, 0, 0, {}, 30};
  report.stats.step = 1;
  OnStep(*core_, report);
  report.rank = 0;
  report.host_memory_bytes = 10;
  OnStep(*core_, report);
  EXPECT_EQ(Shown().host_memory_bytes(), 40);
  EXPECT_EQ(Shown().planned_host_memory_bytes(), 60);
}

// A generation with a device that has no peak leaves no utilization of the one before.
TEST_F(StepsTest, UtilizationIsThePlansWithTheMeasuredSeconds) {
  planner::PlanPrediction predicted;
  predicted.step_seconds = 2;
  predicted.mfu = 0.5;
  int64_t step = 0;
  const auto text_after = [&](const planner::PlanPrediction& of) {
    core_->state.run->ideal_step_seconds = of.ideal_seconds();
    StepReport report{JobId("a"), Epoch(1), 0, {}, 0, 0, {}};
    report.stats.step = ++step;
    report.stats.step_seconds = 2.5;
    OnStep(*core_, report);
    return registry_.ToText();
  };
  EXPECT_THAT(text_after(predicted), HasSubstr("motley_job_mfu_ratio{job_id=\"a\"} 0.4\n"));
  predicted.mfu = 0;
  EXPECT_THAT(text_after(predicted), Not(HasSubstr("motley_job_mfu_ratio{")));
}

}  // namespace
}  // namespace motley::coordinator
