#include "coordinator/store/sqlite_store.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "common/base/stop_signals.h"
#include "coordinator/state/history.h"
#include "tests/coordinator/store/store_fixture.h"

namespace motley::coordinator {
namespace {

// One that measured by purpose, and one of an older worker.
std::vector<RankMemory> MeasuredRanks() {
  return {{DeviceId("a/gpu0"), 1, 2, 3, MeasuredMemory{{1, 2, 3, 4, 5, 6, 7, 8, 9}, true, {10, 11, 12, 13}}},
          {DeviceId("b/gpu0"), 4, 5, 0}};
}

class SqliteStoreTest : public StoreTest {
 protected:
  static JobRecord MakeJob(const std::string& id) {
    JobRecord job;
    job.id = JobId(id);
    job.config.name = "näme \"quoted\"";
    job.config.training.steps = 77;
    job.config.optimizer.lr = 1.0 / 3;
    job.phase = JobPhase::kRunning;
    job.reason = "training";
    job.epoch = Epoch(2);
    job.step = 12;
    job.last_step.step = 12;
    job.last_step.loss = 2.5;
    job.last_step.validation_loss = 3.5;
    job.last_step.validation_bits_per_byte = 1.25;
    job.last_step.ranks = MeasuredRanks();
    job.newest_checkpoint = "/c/step-00000010-gen-3";
    job.predicted_step_seconds = 0.25;
    job.stop_requested = true;
    job.data = {100, "d", DataKind::kRows, 90, 8, 16, 70, 60, 500, "tok"};
    job.validation = TextSummary(7, "v");
    job.error_code = absl::StatusCode::kNotFound;
    job.uid = JobUid("0a1b");
    job.has_unnamed_checkpoints = true;
    job.adopted = "1b2c";
    job.initial_of = {JobId("old"), JobUid("2c3d"), true, "older"};
    return job;
  }
};

TEST_F(SqliteStoreTest, WhatWasCommittedIsThereAfterReopening) {
  {
    auto store = Open();
    Batch batch;
    batch.jobs.push_back(MakeJob("a"));
    batch.epochs.push_back({JobId("a"), Epoch(2), 5, {{DeviceId("n1/gpu0"), 42}}});
    batch.plans.push_back({JobId("a"), Epoch(2), "{}", "plan", "because", "[]", {"p0", "p1"}});
    batch.drains.push_back({NodeName("n1"), true});
    EventRecord event;
    event.job = JobId("a");
    event.kind = kind::kPlan;
    event.message = "planned";
    batch.events = {event, event};
    ComputeProfile profile;
    profile.device = DeviceId("n1/gpu0");
    profile.digest = "abc";
    profile.layer.points = {{1, 0.5, 1.0, 10, 20}};
    profile.load = {1035, 71.5, 72, true};
    profile.cut_short = true;
    batch.compute_profiles.emplace_back(profile, MeasuredSpeed{100, 200, "gpt2 124M"});
    CollectiveProfile collectives;
    collectives.devices = {DeviceId("n1/gpu0"), DeviceId("n2/gpu0")};
    collectives.digest = "xyz";
    collectives.points = {{1024, 0.5, 0.1, 0.2}};
    collectives.links = {{0, 1, 1e-5, 2e9}};
    batch.collective_profiles.push_back(collectives);
    ASSERT_TRUE(store->Commit(batch).ok());
    EXPECT_GT(batch.events[1].sequence, batch.events[0].sequence);
  }
  auto store = Open();
  auto jobs = store->LoadJobs();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  const JobRecord& job = (*jobs)[0];
  EXPECT_EQ(job.config.name, "näme \"quoted\"");
  EXPECT_EQ(job.config.training.steps, 77);
  EXPECT_EQ(job.config.optimizer.lr, 1.0 / 3);
  EXPECT_EQ(job.phase, JobPhase::kRunning);
  EXPECT_EQ(job.epoch, Epoch(2));
  EXPECT_EQ(job.last_step.validation_loss, 3.5);
  EXPECT_EQ(job.last_step.validation_bits_per_byte, 1.25);
  EXPECT_EQ(job.last_step.ranks, MeasuredRanks());
  EXPECT_TRUE(job.stop_requested);
  EXPECT_EQ(job.data, (DataSummary{100, "d", DataKind::kRows, 90, 8, 16, 70, 60, 500, "tok"}));
  EXPECT_EQ(job.validation, TextSummary(7, "v"));
  EXPECT_EQ(job.error_code, absl::StatusCode::kNotFound);
  EXPECT_EQ(job.uid, JobUid("0a1b"));
  EXPECT_TRUE(job.has_unnamed_checkpoints);
  EXPECT_EQ(job.adopted, "1b2c");
  EXPECT_EQ(job.initial_of.job, JobId("old"));
  EXPECT_EQ(job.initial_of.uid, JobUid("2c3d"));
  EXPECT_TRUE(job.initial_of.has_unnamed);
  EXPECT_EQ(job.initial_of.adopted, "older");
  EXPECT_EQ(store->NewestEpoch(JobId("a"))->ranks[0].incarnation, 42);
  EXPECT_EQ(store->FindPlan(JobId("a"))->programs, (std::vector<std::string>{"p0", "p1"}));
  EXPECT_EQ(store->LoadDrained()->size(), 1u);
  EXPECT_EQ(store->FindComputeProfile("abc")->layer.points[0].saved_bytes, 10);
  EXPECT_EQ(store->FindCollectiveProfile("xyz")->devices[1], DeviceId("n2/gpu0"));
  EXPECT_EQ(store->FindCollectiveProfile("xyz")->links[0].bytes_per_second, 2e9);
  EXPECT_EQ(store->LoadSpeeds()->at(DeviceId("n1/gpu0")).flops_per_second, 200);
  EXPECT_EQ(store->LoadSpeeds()->at(DeviceId("n1/gpu0")).model, "gpt2 124M");
  EXPECT_EQ(store->LoadSpeeds()->at(DeviceId("n1/gpu0")).load, (CardLoad{1035, 71.5, 72, true}));
  EXPECT_TRUE(store->LoadSpeeds()->at(DeviceId("n1/gpu0")).cut_short);
  EXPECT_EQ(store->EventsAfter(JobId("a"), 0, 10)->size(), 2u);
  EXPECT_EQ(store->EventsAfter(JobId(), 0, 1)->size(), 1u);
  EXPECT_EQ(store->FindComputeProfile("nope").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SqliteStoreTest, WhatWasMeasuredOfADeviceIsForgotten) {
  {
    auto store = Open();
    Batch batch;
    for (const std::string name : {"n1/gpu0", "n2/gpu0"}) {
      ComputeProfile profile;
      profile.device = DeviceId(name);
      profile.digest = "digest of " + name;
      batch.compute_profiles.emplace_back(profile, MeasuredSpeed());
    }
    CollectiveProfile together;
    together.digest = "together";
    batch.collective_profiles.push_back(together);
    ASSERT_TRUE(store->Commit(batch).ok());
    Batch forget;
    forget.unmeasured = {DeviceId("n1/gpu0")};
    ASSERT_TRUE(store->Commit(forget).ok());
  }
  auto store = Open();
  EXPECT_EQ(store->FindComputeProfile("digest of n1/gpu0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store->FindComputeProfile("digest of n2/gpu0").ok());
  EXPECT_EQ(store->FindCollectiveProfile("together").status().code(), absl::StatusCode::kNotFound);
}

// A process that is killed right after Commit returned: what it acknowledged is there.
TEST_F(SqliteStoreTest, ACommitOutlivesKill) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = SqliteStore::Open(folder_);
    Batch batch;
    batch.jobs.push_back(MakeJob("a"));
    const char said = store.ok() && (*store)->Commit(batch).ok() ? 'y' : 'n';
    (void)!write(ready[1], &said, 1);
    while (true) pause();
  }
  char said = 0;
  ASSERT_EQ(read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  // While it lives, nobody else gets in.
  EXPECT_EQ(SqliteStore::Open(folder_).status().code(), absl::StatusCode::kUnavailable);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(Open()->LoadJobs()->size(), 1u);
}

// As under ulimit -f: the write fails, nothing of the batch is there, and with a higher limit the store goes on.
TEST_F(SqliteStoreTest, AFileThatMayNotGrowIsAnErrorOfTheCommit) {
  IgnoreSignalsOfWrites();
  auto store = Open();
  Batch first;
  first.jobs.push_back(MakeJob("a"));
  ASSERT_TRUE(store->Commit(first).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit lowered = before;
  lowered.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &lowered), 0);
  Batch second;
  second.jobs.push_back(MakeJob("b"));
  const absl::Status status = store->Commit(second);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_NE(status.message().find("LimitFSIZE"), std::string::npos) << status;
  EXPECT_EQ(store->LoadJobs()->size(), 1u);
  EXPECT_TRUE(store->Commit(second).ok());
  store.reset();
  EXPECT_EQ(Open()->LoadJobs()->size(), 2u);
}

// Of a thousand jobs the curves may take 16 MB, of the database and so of every backup.
TEST_F(SqliteStoreTest, CurvesOfAThousandJobsAreSmall) {
  History history;
  for (int64_t s = 1; s <= static_cast<int64_t>(History::kMostBuckets); ++s) {
    StepStats step;
    step.step = s;
    history.Add(step);
  }
  ASSERT_EQ(history.buckets().size(), History::kMostBuckets);
  auto store = Open();
  ASSERT_NE(store, nullptr);
  const auto before = std::filesystem::file_size(Db());
  Batch batch;
  for (int i = 0; i < 1000; ++i) batch.histories.push_back({JobId("a-job-" + std::to_string(i)), history.ToBytes()});
  ASSERT_TRUE(store->Commit(batch).ok());
  const auto read = store->FindHistory(JobId("a-job-7"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, history.ToBytes());
  batch = Batch();
  batch.forgotten = {JobId("a-job-7")};
  ASSERT_TRUE(store->Commit(batch).ok());
  EXPECT_EQ(*store->FindHistory(JobId("a-job-7")), "");
  store.reset();  // what is in the log comes to the file
  EXPECT_LT(std::filesystem::file_size(Db()) - before, 16'000'000u);
  store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(*store->FindHistory(JobId("a-job-8")), history.ToBytes());
}

TEST_F(SqliteStoreTest, AnEpochNumberIsTakenOnce) {
  auto store = Open();
  Batch batch;
  batch.epochs.push_back({JobId("a"), Epoch(3), 0, {}});
  ASSERT_TRUE(store->Commit(batch).ok());
  Batch again;
  again.jobs.push_back(MakeJob("b"));
  again.epochs.push_back({JobId("a"), Epoch(3), 0, {}});
  EXPECT_EQ(store->Commit(again).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(store->LoadJobs()->empty()) << "a batch is there completely or not at all";
}

TEST_F(SqliteStoreTest, ADamagedFileAndAnotherSchemaAreNamed) {
  { Open(); }
  {
    auto database = Database::Open(folder_ + "/coordinator.db");
    ASSERT_TRUE((*database)->Execute("PRAGMA user_version=99").ok());
  }
  const absl::Status version = SqliteStore::Open(folder_).status();
  EXPECT_EQ(version.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(version.message()).find("schema version 99"), std::string::npos);
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/coordinator.db") << std::string(5000, 'x');
  EXPECT_EQ(SqliteStore::Open(folder_).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace motley::coordinator
