// State folders that older coordinators wrote.
#include <filesystem>

#include "absl/strings/match.h"
#include "common/base/job_uid.h"
#include "coordinator/store/ledger.h"
#include "coordinator/store/mark_file.h"
#include "coordinator/store/number_key.h"
#include "coordinator/store/records.h"
#include "tests/coordinator/store/store_fixture.h"

namespace motley::coordinator {
namespace {

namespace fs = std::filesystem;

class VersionsTest : public StoreTest {
 protected:
  static JobRecord Job(SqliteStore& store, const std::string& id) {
    const auto jobs = store.LoadJobs();
    EXPECT_TRUE(jobs.ok()) << jobs.status();
    for (const JobRecord& job : *jobs) {
      if (job.id.value() == id) return job;
    }
    return JobRecord();
  }
  static bool Says(SqliteStore& store, const std::string& words) {
    const auto events = store.EventsAfter(JobId(), 0, 10000);
    EXPECT_TRUE(events.ok()) << events.status();
    for (const EventRecord& event : *events) {
      if (absl::StrContains(event.message, words)) return true;
    }
    return false;
  }
  // Running jobs at step 12 as that version wrote them: rows without the columns that came later.
  void WriteVersion(int64_t version, const std::vector<std::string>& ids, const std::string& secret = "",
                    const JobUid& uid = JobUid()) {
    auto database = Database::Open(Db());
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->Execute(CreateSql(version)).ok());
    Ledger ledger(**database, version);
    ledger.Reset({{"two", 6}, {}, secret});
    for (const std::string& id : ids) {
      JobRecord job;
      job.id = JobId(id);
      job.phase = JobPhase::kRunning;
      job.step = 12;
      job.uid = uid;
      if (version > 2) job.data = TextSummary(500, "d");
      ASSERT_TRUE(ledger.Put(TableId::kJobs, RowOfVersion(version, job)).ok());
    }
    ASSERT_TRUE(ledger.Seal().ok());
    auto mark = MarkFile::Open(folder_ + "/coordinator.mark");
    ASSERT_TRUE(mark.ok());
    ASSERT_TRUE((*mark)->Write(ledger.state().mark).ok());
  }
};

TEST_F(VersionsTest, AFileOfVersionOneIsBroughtToThePresentOneAndKept) {
  {
    auto database = Database::Open(Db());
    ASSERT_TRUE(database.ok());
    const absl::Status status = (*database)->Execute(R"sql(
CREATE TABLE jobs (id TEXT PRIMARY KEY, config TEXT NOT NULL, phase TEXT NOT NULL, reason TEXT NOT NULL, epoch INTEGER NOT NULL,
  step INTEGER NOT NULL, submitted_unix_ms INTEGER NOT NULL, started_unix_ms INTEGER NOT NULL, finished_unix_ms INTEGER NOT NULL,
  last_step TEXT NOT NULL, newest_checkpoint TEXT NOT NULL, predicted_step_seconds TEXT NOT NULL, stop_requested INTEGER NOT NULL,
  data_digest TEXT NOT NULL);
CREATE TABLE epochs (job TEXT NOT NULL, epoch INTEGER NOT NULL, unix_ms INTEGER NOT NULL, ranks TEXT NOT NULL,
  PRIMARY KEY (job, epoch));
CREATE TABLE plans (job TEXT PRIMARY KEY, epoch INTEGER NOT NULL, plan_json TEXT NOT NULL, plan_text TEXT NOT NULL,
  explanation TEXT NOT NULL, trace_json TEXT NOT NULL, programs TEXT NOT NULL);
CREATE TABLE events (sequence INTEGER PRIMARY KEY AUTOINCREMENT, unix_ms INTEGER NOT NULL, job TEXT NOT NULL, kind TEXT NOT NULL,
  node TEXT NOT NULL, device TEXT NOT NULL, epoch INTEGER NOT NULL, message TEXT NOT NULL);
CREATE INDEX events_by_job ON events (job, sequence);
CREATE TABLE drained (node TEXT PRIMARY KEY);
CREATE TABLE profiles (kind TEXT NOT NULL, digest TEXT NOT NULL, device TEXT NOT NULL, body TEXT NOT NULL,
  tokens_per_second TEXT NOT NULL, flops_per_second TEXT NOT NULL, sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  UNIQUE (kind, digest));
INSERT INTO jobs VALUES ('old', '{}', 'running', 'training', 4, 12, 1, 2, 0, '{"step":12}', '/c', '0.5', 0, 'd');
INSERT INTO jobs VALUES ('odd', 'not json', 'running', 'training', 4, 12, 1, 2, 0, '{"step":12}', '/c', '0.5', 0, 'd');
INSERT INTO epochs VALUES ('old', 4, 5, '[{"device":"n1/gpu0","incarnation":9}]');
INSERT INTO events (unix_ms, job, kind, node, device, epoch, message) VALUES (5, 'old', 'plan', '', '', 4, 'planned');
INSERT INTO drained VALUES ('n3');
INSERT INTO profiles (kind, digest, device, body, tokens_per_second, flops_per_second)
  VALUES ('compute', 'x', 'n1/gpu0', '{}', '7', '8');
PRAGMA user_version=1;)sql");
    ASSERT_TRUE(status.ok()) << status;
  }
  auto store = Open();
  EXPECT_EQ(Job(*store, "old").step, 12);
  EXPECT_EQ(Job(*store, "old").epoch, Epoch(4));
  EXPECT_EQ(Job(*store, "odd").phase, JobPhase::kFailed) << "what cannot be read costs that job";
  EXPECT_EQ(store->NewestEpoch(JobId("old"))->ranks[0].incarnation, 9);
  EXPECT_EQ(store->EventsAfter(JobId("old"), 0, 10)->at(0).message, "planned");
  EXPECT_EQ(store->LoadDrained()->at(0).value(), "n3");
  EXPECT_EQ(store->LoadSpeeds()->at(DeviceId("n1/gpu0")).tokens_per_second, 7);
  EXPECT_EQ(store->LoadSpeeds()->at(DeviceId("n1/gpu0")).model, "");
  bool kept = false;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    kept |= absl::StrContains(entry.path().string(), "coordinator.db.version-1-");
  }
  EXPECT_TRUE(kept);
}

TEST_F(VersionsTest, AFileOfVersionTwoKeepsItsRowsAndItsMark) {
  WriteVersion(2, {"old"});
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(store->mark().store_id, "two");
  EXPECT_GE(store->mark().commits, 7);
  EXPECT_EQ(Job(*store, "old").step, 12);
  EXPECT_EQ(Job(*store, "old").data, DataSummary()) << "not known";
  const JobUid uid = Job(*store, "old").uid;
  EXPECT_TRUE(IsJobUid(uid.value())) << uid;
  EXPECT_TRUE(Job(*store, "old").has_unnamed_checkpoints) << "what its ranks have written has no uid";
  store.reset();
  EXPECT_EQ(Job(*Open(), "old").uid, uid) << "once and for all";
  EXPECT_EQ(Open()->findings(), 0) << "once";
}

TEST_F(VersionsTest, JobsOfVersionTenKeepTheirUidAndHaveAdoptedNothing) {
  const auto secret = NumberKey::NewSecret();
  ASSERT_TRUE(secret.ok());
  const JobUid uid(std::string(32, 'a'));
  WriteVersion(10, {"old"}, *secret, uid);
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(store->secret(), *secret);
  const JobRecord job = Job(*store, "old");
  EXPECT_EQ(job.step, 12);
  EXPECT_EQ(job.uid, uid);
  EXPECT_FALSE(job.has_unnamed_checkpoints);
  EXPECT_EQ(job.adopted, "");
  EXPECT_EQ(job.initial_of.job, JobId());
  store.reset();
  EXPECT_EQ(Job(*Open(), "old").uid, uid);
}

TEST_F(VersionsTest, AJobFromBeforeThereWereTokensTrainsOnText) {
  WriteVersion(10, {"old"});
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(Job(*store, "old").data, TextSummary(500, "d"));
  EXPECT_EQ(Job(*store, "old").validation, DataSummary());
}

TEST_F(VersionsTest, DamageInAFileOfVersionTwoIsSeen) {
  WriteVersion(2, {"good", "bad", "gone"});
  {
    auto database = Database::Open(Db());
    ASSERT_TRUE((*database)->Execute("UPDATE jobs SET step = 13 WHERE id = 'bad'; DELETE FROM jobs WHERE id = 'gone'").ok());
  }
  auto store = Open();
  EXPECT_EQ(Job(*store, "good").phase, JobPhase::kRunning);
  EXPECT_EQ(Job(*store, "bad").phase, JobPhase::kFailed);
  EXPECT_TRUE(Says(*store, "1 of 3 rows are missing"));
}

}  // namespace
}  // namespace motley::coordinator
