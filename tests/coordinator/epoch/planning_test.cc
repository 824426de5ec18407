// Looking for the newest checkpoint, on a thread of its own, and planning behind it.
#include "coordinator/epoch/planning.h"

#include <deque>

#include "coordinator/members/leaving.h"
#include "tests/coordinator/core/core_fixture.h"
#include "tests/coordinator/rpc/tiny_job.h"

namespace motley::coordinator {
namespace {

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

TEST_F(Planning, WhoEndsWhilePlanningIsNotTakenForItsVictim) {
  Begin("a", folder_ + "/a");
  EXPECT_EQ(store_->LoadJobs()->at(0).plannings_begun, 1);
  BeginStop(*core_);
  EXPECT_EQ(store_->LoadJobs()->at(0).plannings_begun, 0);
}

}  // namespace
}  // namespace motley::coordinator
