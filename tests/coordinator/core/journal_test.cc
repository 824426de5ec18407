#include "coordinator/core/journal.h"

#include <gtest/gtest.h>

#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class JournalTest : public CoreTest {
 protected:
  Journal& journal() { return core_->journal; }
  const JobId job_ = JobId("a"), other_ = JobId("b");
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

TEST_F(JournalTest, ReadersAreWokenByTheirOwnNewsAlone) {
  int updates = 0, logs = 0, other = 0, events = 0;
  for (int i = 0; i < 1000; ++i) journal().WaitForNews({NewsKind::kUpdates, job_}, [&] { ++updates; });
  journal().WaitForNews({NewsKind::kLogs, job_}, [&] { ++logs; });
  journal().WaitForNews({NewsKind::kLogs, other_}, [&] { ++other; });
  journal().WaitForNews({NewsKind::kEvents, JobId()}, [&] { ++events; });
  for (int i = 0; i < 100; ++i) journal().AddLog(job_, "n1/gpu0", "a line", 1);
  EXPECT_EQ(logs, 1) << "once, for the first line after the wait";
  EXPECT_EQ(updates + other + events, 0);
  journal().PublishStep(job_, StepStats());
  EXPECT_EQ(updates, 1000);
  EXPECT_EQ(other + events, 0);
  EventRecord event;
  event.kind = kind::kNodeJoined;
  core_->Emit(event);
  EXPECT_EQ(events, 1);
}

TEST_F(JournalTest, AReaderThatWentIsNotCalled) {
  int woken = 0;
  const Topic topic{NewsKind::kUpdates, job_};
  const int64_t gone = journal().WaitForNews(topic, [&] { woken += 10; });
  journal().WaitForNews(topic, [&] { woken += 1; });
  journal().StopWaiting(topic, gone);
  journal().PublishStep(job_, StepStats());
  EXPECT_EQ(woken, 1);
  journal().StopWaiting(topic, gone);  // nothing to do any more
}

TEST_F(JournalTest, FollowersOfLinesAndOfAForgottenJobAreWoken) {
  int logs = 0, updates = 0;
  journal().WaitForNews({NewsKind::kLogs, job_}, [&] { ++logs; });
  JobStatus status;
  status.id = job_;
  status.phase = JobPhase::kSucceeded;
  journal().Publish(status);
  EXPECT_EQ(logs, 1);
  journal().WaitForNews({NewsKind::kUpdates, job_}, [&] { ++updates; });
  journal().Forget(job_);
  EXPECT_EQ(updates, 1);
}

TEST_F(JournalTest, WhatIsKeptOfAJobIsBoundedByBytes) {
  for (int i = 0; i < 20; ++i) journal().AddLog(job_, "n1/gpu0", std::string(64 << 20, 'x'), 1);
  EXPECT_LE(journal().Logs(job_).bytes(), 20u * (kMaxTextBytes + 512));
  for (int i = 0; i < 10000; ++i) journal().AddLog(job_, "n1/gpu0", std::string(4096, 'x'), 1);
  EXPECT_LE(journal().Logs(job_).bytes(), config_.log_bytes_kept);
}

// Two hundred waiting jobs whose reasons change with every job that ends took gigabytes: each change kept a copy of the plan.
TEST_F(JournalTest, ChangesOfAJobDoNotKeepItsDescription) {
  JobRecord job;
  job.id = job_;
  job.config.planner.plan_json = std::string(1 << 20, ' ');
  job.reason = std::string(1 << 20, 'r');
  for (int i = 0; i < 100; ++i) core_->SetReason(job, absl::StrCat("waits for ", i, std::string(1 << 20, 'x')));
  EXPECT_LE(job.reason.size(), kMaxTextBytes);
  EXPECT_LE(journal().Updates(job_).bytes(), 100u * (kMaxTextBytes + 2048));
}

}  // namespace
}  // namespace motley::coordinator
