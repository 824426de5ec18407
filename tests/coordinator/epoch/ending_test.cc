#include "coordinator/epoch/ending.h"

#include <sys/resource.h>

#include "common/base/stop_signals.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class StopEnding : public CoreTest {
 protected:
  // The reason of a job that was told to save and stop, and whose ranks are gone now.
  std::string ReasonAfter(bool kill, std::vector<Failure> failures, const std::string& trouble = "") {
    JobRun& run = AddRun("a");
    core_->state.jobs.at(run.job).phase = JobPhase::kRunning;
    run.stage = Stage::kStopping;
    run.ending = Ending::kStop;
    run.saving = true;
    run.failures = std::move(failures);
    run.checkpoint_trouble = trouble;
    if (kill) {
      EXPECT_TRUE(KillRanks(*core_, KillEpoch{std::nullopt}, "saving took longer than 120 s").ok());
    }
    EXPECT_TRUE(FinishEnding(*core_).ok());
    EXPECT_EQ(core_->state.jobs.at(JobId("a")).phase, JobPhase::kStopped);
    return core_->state.jobs.at(JobId("a")).reason;
  }
};

TEST_F(StopEnding, AStopThatDidNotSaveSaysSo) {
  EXPECT_EQ(ReasonAfter(false, {}), "stopped by the user");
  EXPECT_EQ(ReasonAfter(true, {}), "saving took longer than 120 s");
  EXPECT_EQ(ReasonAfter(false, {}, "the checkpoint of step 4 could not be written: its data are not compared yet"),
            "stopped by the user; the checkpoint of step 4 could not be written: its data are not compared yet");
  const Failure died{clock_.Now(), FailureKind::kDied, NodeName("n1"), DeviceId("n1/gpu0"), "it did not end in time"};
  const std::string reason = ReasonAfter(false, {died});
  EXPECT_NE(reason.find("stopped by the user; while saving"), std::string::npos) << reason;
  EXPECT_NE(reason.find("it did not end in time"), std::string::npos) << reason;
}

class EndingOnAFullDisk : public CoreTest {
 protected:
  absl::Status End() {
    IgnoreSignalsOfWrites();
    JobRun& run = AddRun("a");
    core_->state.jobs.at(run.job).phase = JobPhase::kRunning;
    run.stage = Stage::kRunning;
    rlimit before;
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit full = before;
    full.rlim_cur = 4096;
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
    const absl::Status ended =
        BeginEnding(*core_, EndEpoch{true, Ending::kReplan, "stop", std::nullopt}, "the coordinator stops");
    setrlimit(RLIMIT_FSIZE, &before);
    return ended;
  }
};

TEST_F(EndingOnAFullDisk, AReplanWaits) {
  EXPECT_FALSE(End().ok());
  EXPECT_EQ(core_->state.run->stage, Stage::kRunning);
}

TEST_F(EndingOnAFullDisk, ACoordinatorThatEndsLetsTheJobSave) {
  core_->state.stops_at = clock_.Now() + absl::Seconds(60);
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(core_->state.run->stage, Stage::kStopping);
  EXPECT_TRUE(core_->state.run->saving);
}

}  // namespace
}  // namespace motley::coordinator
