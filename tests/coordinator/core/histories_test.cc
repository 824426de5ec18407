#include "coordinator/core/histories.h"

#include <gtest/gtest.h>

#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class HistoriesTest : public CoreTest {
 protected:
  HistoriesTest() { job().id = JobId("a"); }
  JobRecord& job() { return core_->state.jobs[JobId("a")]; }
  void Step(int64_t number) {
    StepStats step;
    step.step = number;
    step.loss = 1;
    core_->journal.PublishStep(JobId("a"), step);
  }
  int64_t Stored() {
    const auto bytes = store_->FindHistory(JobId("a"));
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    if (bytes->empty()) return 0;
    const auto history = History::FromBytes(*bytes);
    EXPECT_TRUE(history.ok()) << history.status();
    return history->last_step();
  }
  void Commit() {
    Batch batch;
    batch.jobs.push_back(job());
    ASSERT_TRUE(core_->journal.Commit(batch).ok());
  }
};

TEST_F(HistoriesTest, IsStoredWithACommitOfItsJobWhenABucketBegan) {
  Step(1);
  EXPECT_EQ(Stored(), 0);
  Commit();
  EXPECT_EQ(Stored(), 1);
  Step(2);
  Commit();
  EXPECT_EQ(Stored(), 2);
  for (int64_t s = 3; s <= 1601; ++s) Step(s);  // eight steps a bucket
  Commit();
  EXPECT_EQ(Stored(), 1601);
  for (int64_t s = 1602; s <= 1608; ++s) Step(s);
  Commit();
  EXPECT_EQ(Stored(), 1601) << "in the same bucket";
  Step(1609);
  Commit();
  EXPECT_EQ(Stored(), 1609);
}

TEST_F(HistoriesTest, IsStoredAfterAMinuteAndAtTheEndOfItsJob) {
  for (int64_t s = 1; s <= 1601; ++s) Step(s);
  Commit();
  Step(1602);
  Commit();
  EXPECT_EQ(Stored(), 1601);
  clock_.Advance(absl::Minutes(1));
  Commit();
  EXPECT_EQ(Stored(), 1602);
  Step(1603);
  ASSERT_TRUE(core_->SetPhase(job(), JobPhase::kSucceeded, "done").ok());
  EXPECT_EQ(Stored(), 1603);
}

TEST_F(HistoriesTest, GoesOnBehindARestartAndGoesWithItsJob) {
  Step(1);
  Commit();
  Histories later(clock_, *store_);
  EXPECT_EQ(later.Of(JobId("a")).last_step(), 1);
  EXPECT_EQ(later.Of(JobId("b")).last_step(), 0);
  Batch batch;
  batch.forgotten = {JobId("a")};
  ASSERT_TRUE(core_->journal.Commit(batch).ok());
  core_->journal.Forget(JobId("a"));
  EXPECT_EQ(core_->journal.histories().Of(JobId("a")).last_step(), 0);
}

TEST_F(HistoriesTest, ADamagedOneBeginsAnew) {
  Batch batch;
  batch.histories.push_back({JobId("c"), "no history"});
  ASSERT_TRUE(store_->Commit(batch).ok());
  testing::internal::CaptureStdout();
  EXPECT_EQ(core_->journal.histories().Of(JobId("c")).last_step(), 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("the curve of job c begins anew"), std::string::npos);
}

}  // namespace
}  // namespace motley::coordinator
