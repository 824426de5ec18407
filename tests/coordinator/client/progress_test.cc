#include "coordinator/client/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

namespace motley::client {
namespace {

class ProgressTest : public testing::Test {
 protected:
  v1::JobUpdate Job(int64_t cursor, v1::JobState state, const std::string& reason = "") {
    v1::JobUpdate update;
    update.set_cursor(cursor);
    update.mutable_job()->set_state(state);
    update.mutable_job()->set_reason(reason);
    return update;
  }
  v1::JobUpdate Step(int64_t cursor, int64_t step) {
    v1::JobUpdate update;
    update.set_cursor(cursor);
    update.mutable_step()->set_step(step);
    update.mutable_step()->set_loss(2);
    return update;
  }
  v1::JobUpdate Event(int64_t cursor, const std::string& kind, const std::string& message) {
    v1::JobUpdate update;
    update.set_cursor(cursor);
    update.mutable_event()->set_kind(kind);
    update.mutable_event()->set_message(message);
    return update;
  }

  std::ostringstream out_;
};

// A stream begins with the state that the job has now; what is kept from before follows.
TEST_F(ProgressTest, StatesComeInOrder) {
  Progress progress(out_, 4, 1);
  progress.Show(Job(0, v1::JOB_STATE_RUNNING));
  progress.Show(Job(1, v1::JOB_STATE_QUEUED));
  progress.Show(Job(2, v1::JOB_STATE_PLANNING, "measuring"));
  progress.Show(Job(3, v1::JOB_STATE_RUNNING));
  progress.Show(Job(3, v1::JOB_STATE_RUNNING));  // the stream was opened again
  EXPECT_EQ(out_.str(), "queued\nplanning: measuring\nrunning\n");
}

TEST_F(ProgressTest, AStateWhoseBeginningIsNotKeptIsToldBeforeTheFirstStep) {
  Progress progress(out_, 4, 1);
  progress.Show(Job(0, v1::JOB_STATE_RUNNING));
  progress.Show(Step(7, 2));
  EXPECT_EQ(out_.str().find("running\nstep 2/4"), 0u) << out_.str();
}

TEST_F(ProgressTest, AFailureIsToldOnce) {
  Progress progress(out_, 4, 1);
  progress.Show(Event(1, "rank_failed", "loss is NaN"));
  progress.Show(Job(2, v1::JOB_STATE_FAILED, "n1/gpu0: loss is NaN"));
  EXPECT_EQ(out_.str(), "") << "the end says it";
  progress.Show(Event(3, "rank_lost", "killed"));
  progress.Show(Job(4, v1::JOB_STATE_REPLANNING, "without n1/gpu0"));
  EXPECT_NE(out_.str().find("rank_lost  killed\nreplanning: without n1/gpu0\n"), std::string::npos) << out_.str();
}

TEST_F(ProgressTest, ATerminalHasOneLineThatMoves) {
  {
    Progress progress(out_, 4, 100, {.width = 80, .live = true});
    progress.Show(Job(1, v1::JOB_STATE_RUNNING));
    progress.Show(Step(2, 1));
    progress.Show(Step(3, 2));
  }
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_NE(text.find("]  step 1/4"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 4), "\r\x1b[K") << "it is taken away before what comes next";
}

TEST_F(ProgressTest, AValidationStaysOnATerminalWithWhatItsLossMeans) {
  v1::JobUpdate validated = Step(2, 1);
  validated.mutable_step()->set_has_validation_loss(true);
  validated.mutable_step()->set_validation_loss(1.5);
  validated.mutable_step()->set_validation_bits_per_byte(0.7);
  for (const auto& [width, last] : {std::pair(100, " a byte)\n"), std::pair(80, " a\n  byte)\n")}) {
    Progress progress(out_, 4, 100, {.width = static_cast<size_t>(width), .live = true});
    progress.Show(Job(1, v1::JOB_STATE_RUNNING));
    progress.Show(validated);
    const std::string line = std::string("step 1/4  loss 2.0000  validation loss 1.5000 (perplexity 4.48; 0.70 bits") + last;
    EXPECT_NE(out_.str().find(line), std::string::npos) << out_.str();
  }
}

TEST_F(ProgressTest, ASuccessWhoseValidationLossIsNotFiniteSaysWhatThatMeans) {
  v1::Job job;
  job.set_id("j");
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.set_step(4);
  job.mutable_spec()->mutable_training()->set_steps(4);
  job.set_reason("all 4 steps are done, but the last validation loss is NaN: the weights have diverged");
  job.mutable_last_step()->set_step(4);
  job.mutable_last_step()->set_loss(2);
  EXPECT_EQ(EndOf(job, out_).code, 0);
  EXPECT_EQ(out_.str(), "job j succeeded at step 4 of 4, loss 2.0000\n");
  out_.str("");
  job.mutable_last_step()->set_has_validation_loss(true);
  job.mutable_last_step()->set_validation_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(EndOf(job, out_, {.width = 200}).code, 0);
  EXPECT_EQ(out_.str(), "job j succeeded at step 4 of 4, loss 2.0000: " + job.reason() + "\n");
}

}  // namespace
}  // namespace motley::client
