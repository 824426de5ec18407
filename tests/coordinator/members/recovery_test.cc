#include "coordinator/members/recovery.h"

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

}  // namespace
}  // namespace motley::coordinator
