#include "coordinator/state/resume.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "common/job/job_fields.h"

namespace motley::coordinator {
namespace {

JobRecord Stopped() {
  JobRecord job;
  job.id = JobId("j");
  job.phase = JobPhase::kStopped;
  job.step = 39;
  job.epoch = Epoch(4);
  job.config.training.steps = 100;
  job.newest_checkpoint = "/c/j/step-00000039-gen-3";
  job.submitted_unix_ms = 1;
  job.finished_unix_ms = 2;
  job.stop_requested = true;
  job.error_code = absl::StatusCode::kNotFound;
  return job;
}

TEST(ResumeTest, TheSameJobIsQueuedAgain) {
  const auto next = Resumed(Stopped(), Stopped().config, 50);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->phase, JobPhase::kQueued);
  EXPECT_EQ(next->reason, "resumed after step 39");
  EXPECT_EQ(next->epoch, Epoch(4)) << "numbers are never used twice";
  EXPECT_EQ(next->newest_checkpoint, "/c/j/step-00000039-gen-3");
  EXPECT_EQ(next->submitted_unix_ms, 50) << "behind the jobs that are queued";
  EXPECT_EQ(next->finished_unix_ms, 0);
  EXPECT_FALSE(next->stop_requested);
  EXPECT_EQ(next->error_code, absl::StatusCode::kOk);
}

TEST(ResumeTest, SettingsMayChangeAndAreSaid) {
  JobConfig config = Stopped().config;
  config.training.steps = 200;
  config.checkpoint.interval = 5;
  config.planner.strategy = "even";
  const auto next = Resumed(Stopped(), config, 50);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->config, config);
  EXPECT_EQ(next->reason,
            "resumed after step 39: training.steps 100 -> 200, checkpoint.interval 0 -> 5, "
            "planner.strategy \"cephalo\" -> \"even\"");
}

TEST(ResumeTest, EveryKeyThatTheCheckpointDependsOnIsRefusedAtOnce) {
  JobConfig config = Stopped().config;
  config.model.flavor = "124M";
  config.data.path = "/other";
  config.training.seed = 9;
  const absl::Status status = Resumed(Stopped(), config, 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"model.flavor of a job may not change", "it is \"debug\", got \"124M\"", "data.path of a job",
                           "training.seed of a job may not change, its checkpoints depend on it: it is 0, got 9"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << part << "\n" << status;
  }
}

TEST(ResumeTest, WithoutStepsLeftThereIsNothingToResume) {
  JobRecord done = Stopped();
  done.phase = JobPhase::kSucceeded;
  done.step = 100;
  const absl::Status status = Resumed(done, done.config, 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "job j has done 100 steps and training.steps is 100: give more, --set training.steps=N");
}

TEST(ResumeTest, PeopleMayGoBackOnTheNodesDisks) {
  JobRecord ended = Stopped();
  ended.safe_checkpoint = "step-00000039-gen-3";
  EXPECT_TRUE(absl::IsInvalidArgument(GoneBack(ended, 20).status())) << "who shares a folder has it in hand";
  ended.config.checkpoint.folder.clear();
  ended.config.checkpoint.storage = "local";
  EXPECT_TRUE(absl::IsInvalidArgument(GoneBack(ended, -1).status()));
  const auto back = GoneBack(ended, 20);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->go_back, (GoBack{Epoch(4), 20}));
  EXPECT_TRUE(back->go_back.GaveUp(Epoch(4), 21));
  EXPECT_FALSE(back->go_back.GaveUp(Epoch(4), 20));
  EXPECT_FALSE(back->go_back.GaveUp(Epoch(5), 21)) << "it was saved since";
  EXPECT_EQ(back->step, 20);
  EXPECT_EQ(back->newest_checkpoint + back->safe_checkpoint, "") << "nobody waits for it";
  ended.safe_checkpoint = "step-00000018-gen-3";
  EXPECT_EQ(GoneBack(ended, 20)->safe_checkpoint, ended.safe_checkpoint) << "it is not given up";
  ended.config.training.steps = ended.step = 39;
  EXPECT_FALSE(Resumed(ended, ended.config, 50).ok());
  EXPECT_TRUE(Resumed(*GoneBack(ended, 20), ended.config, 50).ok()) << "the steps behind it are done again";
}

}  // namespace
}  // namespace motley::coordinator
