#include "coordinator/epoch/input_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/job/job_input.h"
#include "coordinator/epoch/inputs.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

class InputWaits : public CoreTest {
 protected:
  InputWaits() {
    JobRecord& job = core_->state.jobs[JobId("a")];
    job.id = JobId("a");
    job.config.data.path = PathOf({std::string(64, 'a'), "words.txt"});
    KeepInputs(*core_);
  }
  const JobRecord& Job() const { return core_->state.jobs.at(JobId("a")); }
  void After(absl::Duration time) {
    clock_.Advance(time);
    KeepInputs(*core_);
  }
};

// It does not stand in the queue for ever, and can be submitted again.
TEST_F(InputWaits, AJobWhoseDataNobodyGivesForADayEnds) {
  After(absl::Hours(23));
  EXPECT_EQ(Job().phase, JobPhase::kQueued);
  EXPECT_THAT(core_->state.awaits_inputs[JobId("a")], HasSubstr("words.txt lies on no node that is here"));
  After(absl::Hours(1));
  EXPECT_EQ(Job().phase, JobPhase::kFailed);
  EXPECT_THAT(Job().reason,
              HasSubstr("words.txt lay on no node that was here for 24h, and nobody sent it; submit the job again"));
  EXPECT_GT(Job().finished_unix_ms, 0);
  EXPECT_EQ(store_->LoadJobs()->at(0).phase, JobPhase::kFailed);
  After(absl::Hours(1));
  EXPECT_TRUE(core_->inputs.empty()) << "nobody reads it any more";
}

TEST_F(InputWaits, WhileItIsSentTheDayDoesNotCount) {
  After(absl::Hours(23));
  core_->inputs.begin()->second.upload = "a carry";
  After(absl::Hours(23));
  EXPECT_EQ(Job().phase, JobPhase::kQueued);
  core_->inputs.begin()->second.upload.clear();
  After(absl::Minutes(1));
  After(absl::Hours(23));
  EXPECT_EQ(Job().phase, JobPhase::kQueued);
  After(absl::Hours(2));
  EXPECT_EQ(Job().phase, JobPhase::kFailed);
}

// The weights that it began with.
TEST_F(InputWaits, WhatAJobReadsNoMoreIsNotWanted) {
  JobRecord& job = core_->state.jobs[JobId("a")];
  job.config.checkpoint.initial = PathOf({std::string(64, 'b'), "model"});
  EXPECT_EQ(WantedBy(core_->state).size(), 2u);
  job.newest_checkpoint = "step-00000040-gen-3";
  EXPECT_EQ(WantedBy(core_->state).size(), 1u);
  job.phase = JobPhase::kSucceeded;
  EXPECT_TRUE(WantedBy(core_->state).empty());
}

}  // namespace
}  // namespace motley::coordinator
