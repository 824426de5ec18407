// Looking for the newest checkpoint, on a thread of its own, and planning behind it.
#include "coordinator/epoch/planning.h"

#include <gmock/gmock.h>

#include <deque>

#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/looks.h"
#include "coordinator/members/leaving.h"
#include "tests/coordinator/core/core_fixture.h"
#include "tests/coordinator/rpc/tiny_job.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

// Work waits until the test lets it come back.
class Planning : public CoreTest {
 protected:
  struct Task {
    std::function<void()> work, done;
  };
  struct HeldExecutor : public Executor {
    void Run(std::function<void()> work, std::function<void()> done) override {
      plannings.push_back({std::move(work), std::move(done)});
    }
    void RunApart(std::function<void()> work, std::function<void()> done) override {
      looks.push_back({std::move(work), std::move(done)});
    }
    std::deque<Task> plannings, looks;
  };

  Planning() {
    core_ = std::make_unique<Core>(config_, clock_, *store_, held_, registry_, [](std::function<void()> task) { task(); });
  }
  ~Planning() override { core_.reset(); }
  JobRun& Begin(const std::string& id, const std::string& folder) {
    JobRun& run = AddRun(id);
    core_->state.jobs.at(run.job).config = TinyJob(10, folder);
    EXPECT_TRUE(BeginPlanning(*core_).ok());
    return run;
  }
  static void LetEnd(std::deque<Task>& tasks) {
    const Task task = std::move(tasks.front());
    tasks.pop_front();
    task.work();
    task.done();
  }
  HeldExecutor held_;
};

TEST_F(Planning, AFolderThatHangsHoldsUpNoOtherJob) {
  Begin("hangs", folder_ + "/hangs");
  ASSERT_EQ(held_.looks.size(), 1u);
  EXPECT_TRUE(held_.plannings.empty()) << "the planner waits for nothing";
  JobRun& good = Begin("good", folder_ + "/good");
  ASSERT_EQ(held_.looks.size(), 2u);
  std::swap(held_.looks[0], held_.looks[1]);
  clock_.Advance(absl::Minutes(1));
  LetEnd(held_.looks);
  EXPECT_FALSE(good.looking);
  EXPECT_EQ(good.stage_since, clock_.Now()) << "the planner's time counts from its own begin";
  ASSERT_EQ(held_.plannings.size(), 1u);
  LetEnd(held_.looks);
  EXPECT_EQ(held_.plannings.size(), 1u) << "what comes too late is dropped";
}

TEST_F(Planning, AFolderIsAskedOnceAtATime) {
  for (int i = 0; i < 5; ++i) Begin("a", folder_ + "/a");
  EXPECT_EQ(held_.looks.size(), 1u) << "each would leave a thread behind";
  LetEnd(held_.looks);
  ASSERT_EQ(held_.looks.size(), 1u) << "the newest has its turn";
  EXPECT_TRUE(held_.plannings.empty());
  LetEnd(held_.looks);
  EXPECT_EQ(held_.plannings.size(), 1u);
  EXPECT_TRUE(core_->looks.empty());
}

// Jobs that are submitted and stopped, each in a folder that hangs: its thread cannot be ended.
TEST_F(Planning, OnlySoManyLooksAreUnderWay) {
  for (size_t i = 0; i < kMostLooks; ++i) Begin("hangs-" + std::to_string(i), folder_ + "/" + std::to_string(i));
  EXPECT_EQ(held_.looks.size(), kMostLooks);
  clock_.Advance(absl::Minutes(5));
  const JobRun& run = Begin("more", folder_ + "/more");
  EXPECT_EQ(held_.looks.size(), kMostLooks);
  ASSERT_TRUE(run.prepared);
  EXPECT_TRUE(absl::IsUnavailable(run.prepared->status)) << "later, perhaps";
  EXPECT_THAT(std::string(run.prepared->status.message()),
              HasSubstr("16 looks for checkpoints do not come back, and more are not begun; the oldest is in '" + folder_ + "/"));
  Drive(*core_);
  const JobRecord& job = core_->state.jobs.at(JobId("more"));
  EXPECT_EQ(job.phase, JobPhase::kWaiting) << job.reason;
  EXPECT_EQ(job.plannings_begun, 0);
  LetEnd(held_.looks);
  LookAgain(*core_);
  EXPECT_EQ(held_.looks.size(), kMostLooks - 1);
  clock_.Advance(absl::Minutes(1));
  LookAgain(*core_);
  EXPECT_EQ(held_.looks.size(), kMostLooks) << "one has come back";
}

TEST_F(Planning, WhoWaitsForItsFolderIsLookedForAgain) {
  JobRun& run = Begin("a", folder_ + "/a");
  core_->state.jobs.at(run.job).newest_checkpoint = folder_ + "/a/step-00000002-epoch-1";
  run.stage = Stage::kIdle;
  LetEnd(held_.looks);
  EXPECT_TRUE(run.folder.why.empty()) << "it does not wait for it";
  run.folder.why = "it was away";
  run.trouble.times = 1;
  LookAgain(*core_);
  LookAgain(*core_);
  ASSERT_EQ(held_.looks.size(), 1u) << "one at a time";
  clock_.Advance(core_->config.driver.look_patience + absl::Seconds(1));
  LookAgain(*core_);
  EXPECT_THAT(run.folder.why, HasSubstr("checkpoint.folder '" + folder_ + "/a' does not answer"));
  LetEnd(held_.looks);
  EXPECT_THAT(run.folder.why, HasSubstr("was published; the coordinator must see checkpoint.folder as the workers do"));
  LookAgain(*core_);
  EXPECT_TRUE(held_.looks.empty()) << "after a pause";
  core_->state.jobs.at(run.job).newest_checkpoint.clear();
  clock_.Advance(absl::Seconds(30));
  LookAgain(*core_);
  ASSERT_EQ(held_.looks.size(), 1u);
  LetEnd(held_.looks);
  EXPECT_TRUE(run.folder.why.empty()) << run.folder.why;
  EXPECT_TRUE(run.trouble.waited);
}

TEST_F(Planning, WhichFolderIsLookedIntoIsKnown) {
  JobRun& run = Begin("a", folder_ + "/a");
  NoteWhereItLooks(*core_);
  EXPECT_FALSE(run.looks_at_initial);
  LetEnd(held_.looks);
  core_->state.jobs.at(run.job).config.checkpoint.initial = folder_ + "/start";
  ASSERT_TRUE(BeginPlanning(*core_).ok());
  held_.looks[0].work();
  NoteWhereItLooks(*core_);
  EXPECT_TRUE(run.looks_at_initial);
}

TEST_F(Planning, WhoEndsWhilePlanningIsNotTakenForItsVictim) {
  Begin("a", folder_ + "/a");
  EXPECT_EQ(store_->LoadJobs()->at(0).plannings_begun, 1);
  BeginStop(*core_);
  EXPECT_EQ(store_->LoadJobs()->at(0).plannings_begun, 0);
}

}  // namespace
}  // namespace motley::coordinator
