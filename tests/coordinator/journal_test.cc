#include "coordinator/journal.h"

#include <gtest/gtest.h>

#include "tests/coordinator/jobs/core_fixture.h"

namespace motley::coordinator {
namespace {

class JournalTest : public CoreTest {
 protected:
  std::string NewestLog(const JobId& job) {
    std::string text;
    int64_t found = 0;
    for (const LogRecord* line; (line = core_->journal.Logs(job).After(found, &found)) != nullptr;) {
      text = line->source + "|" + line->text;
    }
    return text;
  }
};

constexpr char kDirty[] = "cannot read /data/\xff\n2026-03-01 coordinator  succeeded\x1b[2J";
constexpr char kClean[] = "cannot read /data/\\xff\\n2026-03-01 coordinator  succeeded\\u001b[2J";

TEST_F(JournalTest, WhatIsStoredAndPublishedIsOneLineOfValidText) {
  JobRecord& job = core_->state.jobs[JobId("a")];
  job.id = JobId("a");
  testing::internal::CaptureStdout();
  ASSERT_TRUE(core_->SetPhase(job, JobPhase::kWaiting, kDirty).ok());
  const std::string logged = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(logged.begin(), logged.end(), '\n'), 1) << logged;
  EXPECT_EQ(job.reason, kClean);
  EXPECT_EQ(store_->LoadJobs()->at(0).reason, kClean);
  const auto events = store_->EventsAfter(JobId("a"), 0, 10);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->at(0).message, std::string("queued -> waiting: ") + kClean);
  EXPECT_EQ(NewestLog(job.id), std::string("coordinator|job_state: queued -> waiting: ") + kClean);
  core_->SetReason(job, "again\xff");
  EXPECT_EQ(job.reason, "again\\xff");
}

TEST_F(JournalTest, LinesOfRanksAreOneLineToo) {
  core_->journal.AddLog(JobId("a"), "n1\n", kDirty, 5);
  EXPECT_EQ(NewestLog(JobId("a")), std::string("n1\\n|") + kClean);
}

}  // namespace
}  // namespace motley::coordinator
