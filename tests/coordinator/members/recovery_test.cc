#include "coordinator/members/recovery.h"

#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/planning.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using Recovery = CoreTest;

JobRecord Planned(const std::string& id, int plannings) {
  JobRecord job;
  job.id = JobId(id);
  job.phase = JobPhase::kPlanning;
  job.plannings_begun = plannings;
  return job;
}

TEST_F(Recovery, AJobThatKilledItsPlannerTwiceIsFailed) {
  Batch batch;
  batch.jobs = {Planned("once", 1), Planned("twice", 2)};
  ASSERT_TRUE(store_->Commit(batch).ok());
  ASSERT_TRUE(Recover(*core_).ok());
  const JobRecord& twice = core_->state.jobs.at(JobId("twice"));
  EXPECT_EQ(twice.phase, JobPhase::kFailed);
  EXPECT_NE(twice.reason.find("ended 2 times in a row while it planned this job"), std::string::npos) << twice.reason;
  EXPECT_EQ(core_->state.jobs.at(JobId("once")).phase, JobPhase::kReplanning) << "once may have been anything";
  EXPECT_EQ(core_->state.run->job, JobId("once")) << "the others go on";
}

TEST_F(Recovery, PlanningIsCountedOnDiskBeforeItBegins) {
  AddRun("a");
  ASSERT_TRUE(BeginPlanning(*core_).ok());
  EXPECT_EQ(store_->LoadJobs()->at(0).plannings_begun, 1);
}

// The node that took part is gone when the coordinator comes back: the job knows it all the same.
TEST_F(Recovery, WhoTookPartAndWhatIsNamedOutliveARestart) {
  JobRecord job = Planned("a", 0);
  job.phase = JobPhase::kRunning;
  job.config.planner.pins = "stage0=n1,stage1=n2";
  Batch batch;
  batch.jobs = {job};
  batch.epochs = {{job.id, Epoch(1), 0, {{DeviceId("n1/gpu0"), 1}, {DeviceId("n2/gpu0"), 1}}},
                  {job.id, Epoch(2), 0, {{DeviceId("n1/gpu0"), 1}}}};
  ASSERT_TRUE(store_->Commit(batch).ok());
  ASSERT_TRUE(Recover(*core_).ok());
  const JobRun& run = *core_->state.run;
  EXPECT_TRUE(run.has_run);
  EXPECT_EQ(run.took_part, (std::set<DeviceId>{DeviceId("n1/gpu0"), DeviceId("n2/gpu0")}));
  EXPECT_EQ(run.named, (std::vector<std::string>{"n1", "n2"}));
  AddNode("n1");
  core_->state.run->ranks.clear();
  clock_.Advance(absl::Minutes(1));
  Drive(*core_);
  const JobRecord& waiting = core_->state.jobs.at(job.id);
  EXPECT_EQ(waiting.phase, JobPhase::kWaiting) << waiting.reason;
  EXPECT_NE(waiting.reason.find("n2 (not seen since the coordinator was started)"), std::string::npos) << waiting.reason;
}

// Nothing in the store tells of the node that it is pinned to.
TEST_F(Recovery, APinnedJobThatNeverRanWaitsForItsNode) {
  JobRecord job = Planned("a", 0);
  job.phase = JobPhase::kQueued;
  job.config.planner.pins = "stage0=n1,stage1=n2";
  Batch batch;
  batch.jobs = {job};
  ASSERT_TRUE(store_->Commit(batch).ok());
  ASSERT_TRUE(Recover(*core_).ok());
  AddNode("n1");
  clock_.Advance(absl::Minutes(1));
  Drive(*core_);
  const JobRecord& waiting = core_->state.jobs.at(job.id);
  EXPECT_EQ(waiting.phase, JobPhase::kWaiting) << waiting.reason;
  EXPECT_NE(waiting.reason.find("n2 (not seen since the coordinator was started)"), std::string::npos) << waiting.reason;
}

}  // namespace
}  // namespace motley::coordinator
