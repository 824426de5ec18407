#include "coordinator/periodic/retention.h"

#include "absl/strings/str_cat.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class RetentionTest : public CoreTest {
 protected:
  void Add(const std::string& id, JobPhase phase, int64_t finished_unix_ms) {
    Batch batch;
    batch.jobs.resize(1);
    JobRecord& job = batch.jobs[0];
    job.id = JobId(id);
    job.phase = phase;
    job.finished_unix_ms = finished_unix_ms;
    batch.epochs.push_back({job.id, Epoch(1), 0, {{DeviceId("n1/gpu0"), 1}}});
    batch.plans.push_back({job.id, Epoch(1), "{}", "", "", "", {}});
    core_->state.jobs[job.id] = job;
    ASSERT_TRUE(core_->journal.Commit(batch).ok());
  }
  void Reopen() {
    core_.reset();
    store_.reset();
    store_ = *SqliteStore::Open(folder_);
    core_ = std::make_unique<Core>(config_, clock_, *store_, executor_, registry_, [](std::function<void()> task) { task(); });
  }
};

TEST_F(RetentionTest, FinishedJobsBeyondTheNewestOrTooOldGoOldestFirst) {
  ClusterState state;
  for (int i = 0; i < 6; ++i) {
    JobRecord& job = state.jobs[JobId(absl::StrCat("j", i))];
    job.id = JobId(absl::StrCat("j", i));
    job.phase = i == 0 ? JobPhase::kRunning : JobPhase::kFailed;
    job.finished_unix_ms = i == 0 ? 0 : 1000 + i;
  }
  JobAges ages;
  for (int i = 1; i < 6; ++i) ages[JobId(absl::StrCat("j", i))] = absl::Minutes(i < 3 ? 3 : 6 - i);
  RetentionConfig config;
  config.jobs = 3;
  EXPECT_EQ(JobsToForget(ages, state, config, 10), (std::vector<JobId>{JobId("j1"), JobId("j2")}));
  EXPECT_EQ(JobsToForget(ages, state, config, 1), (std::vector<JobId>{JobId("j1")}));
  config.days = 1;
  ages[JobId("j3")] = absl::Hours(24) + absl::Seconds(1);
  EXPECT_EQ(JobsToForget(ages, state, config, 10), (std::vector<JobId>{JobId("j3"), JobId("j1")})) << "j3 is more than a day old";
  config.jobs = 100;
  EXPECT_EQ(JobsToForget(ages, state, config, 10), (std::vector<JobId>{JobId("j3")}));
}

// Set wrong for a minute, or for ever, ahead or back: what is deleted is what has been there for so many days.
TEST_F(RetentionTest, AWallClockThatJumpsDeletesNothing) {
  for (const absl::Duration jump : {absl::Hours(24) * 200, absl::Hours(24) * -200}) {
    for (const bool for_ever : {false, true}) {
      const std::string id = absl::StrCat("j", absl::ToInt64Hours(jump) < 0, for_ever);
      Add(id, JobPhase::kSucceeded, core_->journal.UnixMs());
      Retain(*core_);
      clock_.MoveWall(jump);
      Add(id + "-while", JobPhase::kSucceeded, core_->journal.UnixMs());
      Retain(*core_);
      clock_.Advance(absl::Minutes(1));
      if (!for_ever) clock_.MoveWall(-jump);
      clock_.Advance(absl::Hours(24) * 179);
      Retain(*core_);
      EXPECT_TRUE(core_->state.jobs.contains(JobId(id)) && core_->state.jobs.contains(JobId(id + "-while"))) << id;
      clock_.Advance(absl::Hours(24));
      Retain(*core_);
      EXPECT_FALSE(core_->state.jobs.contains(JobId(id)) || core_->state.jobs.contains(JobId(id + "-while"))) << id;
    }
  }
}

TEST_F(RetentionTest, AJobThatIsResumedAndEndsAgainIsNew) {
  Add("a", JobPhase::kFailed, core_->journal.UnixMs());
  Retain(*core_);
  clock_.Advance(absl::Hours(24) * 179);
  core_->state.jobs.at(JobId("a")).finished_unix_ms = core_->journal.UnixMs();
  Retain(*core_);
  clock_.Advance(absl::Hours(24) * 179);
  Retain(*core_);
  EXPECT_TRUE(core_->state.jobs.contains(JobId("a")));
}

TEST_F(RetentionTest, AForgottenJobLeavesNothingAndTheStoreStaysSound) {
  Add("old", JobPhase::kSucceeded, 1);
  Add("new", JobPhase::kSucceeded, 2);
  config_.retention.jobs = 1;
  clock_.Advance(absl::Hours(1));
  Retain(*core_);
  EXPECT_FALSE(core_->state.jobs.contains(JobId("old")));
  EXPECT_TRUE(core_->state.jobs.contains(JobId("new")));
  EXPECT_EQ(store_->LoadJobs()->size(), 1u);
  EXPECT_EQ(store_->FindPlan(JobId("old")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->NewestEpoch(JobId("old")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->FindPlan(JobId("new")).ok());
  const auto events = store_->EventsAfter(JobId(), 0, 10);
  EXPECT_EQ(events->back().kind, kind::kJobsForgotten);
  EXPECT_NE(events->back().message.find("old"), std::string::npos);
  Reopen();
  EXPECT_EQ(store_->findings(), 0);
}

TEST_F(RetentionTest, TablesThatOnlyGrowAreCutFromTheirOldEnd) {
  config_.retention.events = 30;
  config_.retention.epochs = 4;
  config_.retention.profiles = 5;
  Add("a", JobPhase::kRunning, 0);
  for (int i = 0; i < 100; ++i) {
    Batch batch;
    EventRecord event;
    event.kind = kind::kPlan;
    event.message = absl::StrCat("event ", i);
    batch.events.push_back(std::move(event));
    if (i < 10) batch.epochs.push_back({JobId("a"), Epoch(i + 2), 0, {}});
    CollectiveProfile profile;
    profile.digest = absl::StrCat("digest ", i);
    batch.collective_profiles.push_back(std::move(profile));
    ASSERT_TRUE(store_->Commit(batch).ok());
  }
  Retain(*core_);
  const auto events = store_->EventsAfter(JobId(), 0, 1000);
  ASSERT_EQ(events->size(), 30u);
  EXPECT_EQ(events->back().message, "event 99");
  EXPECT_TRUE(store_->FindCollectiveProfile("digest 95").ok());
  EXPECT_FALSE(store_->FindCollectiveProfile("digest 94").ok());
  EXPECT_EQ(store_->NewestEpoch(JobId("a"))->epoch, Epoch(1)) << "the newest that started ranks is always kept";
  Batch taken;
  taken.epochs.push_back({JobId("a"), Epoch(11), 0, {}});
  EXPECT_EQ(store_->Commit(taken).code(), absl::StatusCode::kAlreadyExists) << "numbers are not given again";
  EXPECT_EQ(*store_->Prune({30, 5, 4}, 1000), 0) << "nothing is left to do, and no commit is made for it";
  Reopen();
  EXPECT_EQ(store_->findings(), 0);
}

TEST_F(RetentionTest, ATurnIsShort) {
  config_.retention.events = 1;
  Batch batch;
  for (int i = 0; i < 3000; ++i) {
    EventRecord event;
    event.kind = kind::kPlan;
    batch.events.push_back(event);
  }
  ASSERT_TRUE(store_->Commit(batch).ok());
  Retain(*core_);
  EXPECT_EQ(store_->EventsAfter(JobId(), 0, 10000)->size(), 1800u);
  EXPECT_EQ(store_->EventsAfter(JobId(), 0, 1)->at(0).sequence, 1201);
}

}  // namespace
}  // namespace motley::coordinator
