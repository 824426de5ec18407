// A store that is not what was written to it: altered, cut, emptied, older. Whatever is done to the files, what is read is what
// was written, or an error or an event says otherwise.
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/coordinator/store/store_fixture.h"

namespace motley::coordinator {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}
void WriteAll(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

JobRecord MakeJob(const std::string& id, JobPhase phase) {
  JobRecord job;
  job.id = JobId(id);
  job.config.name = "of " + id;
  job.phase = phase;
  job.reason = "because";
  job.epoch = Epoch(2);
  job.step = 12;
  job.submitted_unix_ms = 1000;
  return job;
}

class DamageTest : public StoreTest {
 protected:
  // In memory where there is such a folder: thousands of databases are written.
  DamageTest() : StoreTest(fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) {}
  // Jobs a to f (a and b not finished), each with an epoch, a plan and events; a drained node; profiles.
  static void Fill(SqliteStore& store) {
    for (const std::string id : {"a", "b", "c", "d", "e", "f"}) {
      Batch batch;
      batch.jobs.push_back(MakeJob(id, id < "c" ? JobPhase::kRunning : JobPhase::kSucceeded));
      batch.epochs.push_back({JobId(id), Epoch(1), 5, {}});
      batch.epochs.push_back({JobId(id), Epoch(2), 6, {{DeviceId("n1/gpu0"), 42}}});
      batch.plans.push_back({JobId(id), Epoch(2), "{}", "the plan of " + id, std::string(600, 'e'), "[]", {"p0", "p1"}});
      EventRecord event;
      event.job = JobId(id);
      event.kind = kind::kPlan;
      for (int i = 0; i < 8; ++i) {
        event.message = absl::StrCat("event ", i, " of ", id);
        batch.events.push_back(event);
      }
      ComputeProfile profile;
      profile.device = DeviceId("n1/" + id);
      profile.digest = "digest-" + id;
      profile.layer.points = {{1, 0.5, 1.0, 10, 20}};
      batch.compute_profiles.emplace_back(profile, MeasuredSpeed{100, 200});
      ASSERT_TRUE(store.Commit(batch).ok());
    }
    Batch batch;
    batch.drains.push_back({NodeName("n7"), true});
    ASSERT_TRUE(store.Commit(batch).ok());
  }
  // Everything that can be asked for, by what it is; errors too. Events of the mending apart.
  static std::map<std::string, std::string> Content(SqliteStore& store) {
    std::map<std::string, std::string> all;
    auto add = [&](const std::string& what, const auto& row) {
      all[what] = row.ok() ? HashOf(what, ToRow(*row)) : std::string(row.status().message());
    };
    auto jobs = store.LoadJobs();
    if (!jobs.ok()) all["jobs"] = std::string(jobs.status().message());
    if (jobs.ok()) {
      for (const JobRecord& job : *jobs) all["job " + job.id.value()] = HashOf("job", ToRow(job));
    }
    for (const std::string id : {"a", "b", "c", "d", "e", "f"}) {
      add("epoch " + id, store.NewestEpoch(JobId(id)));
      add("plan " + id, store.FindPlan(JobId(id)));
      auto profile = store.FindComputeProfile("digest-" + id);
      all["profile " + id] = profile.ok() ? HashOf("p", ToRow(*profile, {}, 0)) : std::string(profile.status().message());
      for (const JobId& job : {JobId(id), JobId()}) {
        auto events = store.EventsAfter(job, 0, 10000);
        std::string& text = all[absl::StrCat("events ", job.value())];
        if (!events.ok()) text = std::string(events.status().message());
        if (!events.ok()) continue;
        text.clear();
        for (const EventRecord& event : *events) {
          if (!absl::StartsWith(event.kind, "store_")) absl::StrAppend(&text, HashOf("e", ToRow(event)));
        }
      }
    }
    auto drained = store.LoadDrained();
    all["drained"] = drained.ok() && !drained->empty() ? drained->at(0).value() : "";
    return all;
  }
  static std::vector<std::string> Said(SqliteStore& store) {
    std::vector<std::string> said;
    const auto events = store.EventsAfter(JobId(), 0, 10000);
    EXPECT_TRUE(events.ok()) << events.status();
    for (const EventRecord& event : *events) {
      if (absl::StartsWith(event.kind, "store_")) said.push_back(event.message);
    }
    return said;
  }
  static bool Says(SqliteStore& store, const std::string& words) {
    for (const std::string& text : Said(store)) {
      if (absl::StrContains(text, words)) return true;
    }
    return false;
  }
  static JobRecord Job(SqliteStore& store, const std::string& id) {
    const auto jobs = store.LoadJobs();
    EXPECT_TRUE(jobs.ok()) << jobs.status();
    for (const JobRecord& job : *jobs) {
      if (job.id.value() == id) return job;
    }
    return JobRecord();
  }
  void Alter(const std::string& sql) {
    auto database = Database::Open(Db());
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status status = (*database)->Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  // The files as a killed coordinator leaves them, in a folder of their own.
  void CopyRunning(const std::string& to) {
    fs::create_directories(to);
    for (const char* name : {"/coordinator.db", "/coordinator.db-wal", "/coordinator.mark"}) {
      fs::copy_file(folder_ + name, to + name);
    }
  }
};

TEST_F(DamageTest, ASoundStoreHasNothingToSay) {
  Fill(*Open());
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_TRUE(Said(*store).empty());
  EXPECT_EQ(Job(*store, "a").epoch, Epoch(2));
}

// Of every bit that flips in the file at rest: what was written is read, or an error or an event says that it is not.
TEST_F(DamageTest, NoFlippedBitGivesOtherContentWithoutAWord) {
  Fill(*Open());
  const auto truth = Content(*Open());
  const std::string database = ReadAll(Db()), mark = ReadAll(folder_ + "/coordinator.mark");
  const char* seed_text = getenv("MOTLEY_SEED");
  const unsigned seed = seed_text == nullptr ? 20261122 : static_cast<unsigned>(atoi(seed_text));
  std::mt19937 random(seed);
  int refused = 0, said = 0, same = 0;
  constexpr int kFlips = 2400;
  for (int flip = 0; flip < kFlips; ++flip) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::string bytes = database;
    // A quarter of them in the header and the definitions, where little is much.
    const size_t at = random() % (flip % 4 == 0 ? 4096 : bytes.size());
    const int bit = static_cast<int>(random() % 8);
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    WriteAll(Db(), bytes);
    WriteAll(folder_ + "/coordinator.mark", mark);
    SCOPED_TRACE(absl::StrCat("byte ", at, " bit ", bit, " seed ", seed));
    auto store = SqliteStore::Open(folder_);
    if (!store.ok()) {
      EXPECT_TRUE(absl::StrContains(std::string(store.status().message()), "coordinator.db")) << store.status();
      ++refused;
      continue;
    }
    const auto found = Content(**store);
    if ((*store)->findings() == 0) {
      ASSERT_EQ(found, truth);
      ++same;
      continue;
    }
    ++said;
    ASSERT_FALSE(Said(**store).empty());
    // No job goes without a word, and one that is not FAILED for it is what was written.
    size_t jobs = 0;
    for (const auto& [what, hash] : found) {
      if (!absl::StartsWith(what, "job ")) continue;
      ++jobs;
      const JobRecord job = Job(**store, what.substr(4));
      if (!absl::StrContains(job.reason, "was damaged")) ASSERT_EQ(hash, truth.at(what)) << what;
    }
    ASSERT_TRUE(jobs >= 6 || Says(**store, "whose ids nothing else names") || Says(**store, "cannot be known")) << jobs;
  }
  printf("%d flips: %d said, %d refused with words, %d without effect\n", kFlips, said, refused, same);
  EXPECT_GT(said, kFlips / 20) << "the flips meet what is stored";
}

TEST_F(DamageTest, AnAlteredRecordCostsItsJobAndNoOther) {
  Fill(*Open());
  Alter("UPDATE jobs SET step = 999 WHERE id = 'b'");
  auto store = Open();
  EXPECT_EQ(store->LoadJobs()->size(), 6u);
  EXPECT_EQ(Job(*store, "b").phase, JobPhase::kFailed);
  EXPECT_TRUE(absl::StrContains(Job(*store, "b").reason, "damaged")) << Job(*store, "b").reason;
  EXPECT_EQ(Job(*store, "b").epoch, Epoch(2)) << "what ranks may still know of it is fenced off";
  EXPECT_EQ(Job(*store, "a").phase, JobPhase::kRunning);
  EXPECT_FALSE(store->EventsAfter(JobId("b"), 0, 1000)->back().message.empty());
  EXPECT_TRUE(Says(*store, "table jobs: 1 row is not what was written ('b')"));
  EXPECT_TRUE(Says(*store, "job b is FAILED"));
  store.reset();
  EXPECT_EQ(Open()->findings(), 0) << "mended once";
  bool kept = false;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    kept |= absl::StrContains(entry.path().string(), "coordinator.db.damaged-");
  }
  EXPECT_TRUE(kept) << "the damaged file is evidence";
}

TEST_F(DamageTest, AnAlteredIdIsNotAnotherJob) {
  Fill(*Open());
  Alter("UPDATE jobs SET id = 'z' WHERE id = 'b'");
  auto store = Open();
  EXPECT_EQ(Job(*store, "b").phase, JobPhase::kFailed);
  EXPECT_TRUE(Job(*store, "z").id.empty());
}

TEST_F(DamageTest, AMissingRecordIsMissed) {
  Fill(*Open());
  Alter("DELETE FROM jobs WHERE id = 'b'; DELETE FROM drained;");
  auto store = Open();
  EXPECT_EQ(Job(*store, "b").phase, JobPhase::kFailed);
  EXPECT_TRUE(Says(*store, "table jobs: 1 of 6 rows are missing"));
  EXPECT_TRUE(Says(*store, "table drained: 1 of 1 rows are missing"));
}

TEST_F(DamageTest, ALostLogIsAnOlderState) {
  auto store = Open();
  Fill(*store);
  const std::string killed = folder_ + "/killed";
  CopyRunning(killed);
  store.reset();
  fs::remove(killed + "/coordinator.db-wal");
  auto opened = SqliteStore::Open(killed);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_GT((*opened)->findings(), 0);
  EXPECT_TRUE(Says(**opened, "missing or empty")) << "all of it was in the log";
}

TEST_F(DamageTest, AShortenedLogIsAnOlderStateAndEpochsGoAboveWhatIsLost) {
  { Fill(*Open()); }
  auto store = Open();
  Batch batch;
  batch.jobs.push_back(MakeJob("a", JobPhase::kRunning));
  batch.jobs[0].epoch = Epoch(7);
  for (int epoch = 3; epoch <= 7; ++epoch) batch.epochs.push_back({JobId("a"), Epoch(epoch), 0, {}});
  ASSERT_TRUE(store->Commit(batch).ok());
  for (int i = 0; i < 20; ++i) {
    Batch more;
    more.jobs.push_back(MakeJob("g", JobPhase::kQueued));
    more.jobs[0].epoch = Epoch(i);
    ASSERT_TRUE(store->Commit(more).ok());
  }
  const std::string killed = folder_ + "/killed";
  CopyRunning(killed);
  const int64_t commits = store->mark().commits;
  store.reset();
  fs::resize_file(killed + "/coordinator.db-wal", fs::file_size(killed + "/coordinator.db-wal") / 2);
  auto opened = SqliteStore::Open(killed);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(Says(**opened, absl::StrCat("of ", commits, " commits are there")));
  EXPECT_GE(Job(**opened, "g").epoch, Epoch(19)) << "no number of the lost commits is given again";
  EXPECT_EQ(Job(**opened, "c").epoch, Epoch(2)) << "a finished job stays as it is";
  EXPECT_GT((*opened)->mark().commits, commits);
  opened->reset();
  EXPECT_EQ((*SqliteStore::Open(killed))->findings(), 0) << "said once";
}

TEST_F(DamageTest, AnOlderFileAndAnotherStoresFileAreNoticed) {
  { Fill(*Open()); }
  const std::string older = ReadAll(Db());
  {
    auto store = Open();
    Batch batch;
    batch.jobs.push_back(MakeJob("late", JobPhase::kQueued));
    ASSERT_TRUE(store->Commit(batch).ok());
  }
  WriteAll(Db(), older);
  EXPECT_TRUE(Says(*Open(), "the database is older than it was"));
  const std::string other = folder_ + "/other";
  { ASSERT_TRUE(SqliteStore::Open(other).ok()); }
  fs::copy_file(other + "/coordinator.db", Db(), fs::copy_options::overwrite_existing);
  EXPECT_TRUE(Says(*Open(), "the database is another one"));
}

TEST_F(DamageTest, AnEmptiedOrRemovedDatabaseIsNotAFreshOne) {
  { Fill(*Open()); }
  const StoreMark mark = Open()->mark();
  fs::resize_file(Db(), 0);
  auto store = Open();
  EXPECT_TRUE(Says(*store, "missing or empty"));
  EXPECT_EQ(store->mark().store_id, mark.store_id) << "workers know it by this";
  EXPECT_GT(store->mark().commits, mark.commits);
  store.reset();
  fs::remove(Db());
  EXPECT_TRUE(Says(*Open(), "missing or empty"));
}

TEST_F(DamageTest, ALostOrAlteredMarkFileIsSaid) {
  { Fill(*Open()); }
  fs::remove(folder_ + "/coordinator.mark");
  EXPECT_TRUE(Says(*Open(), "coordinator.mark is missing"));
  std::string mark = ReadAll(folder_ + "/coordinator.mark");
  mark[30] ^= 1;
  WriteAll(folder_ + "/coordinator.mark", mark);
  EXPECT_TRUE(Says(*Open(), "coordinator.mark is not what was written"));
  EXPECT_EQ(Open()->findings(), 0);
}

TEST_F(DamageTest, AReplacementThatWasInterruptedIsFinished) {
  { Fill(*Open()); }
  // The old database is away, the new one is not yet in its place.
  fs::rename(Db(), folder_ + "/coordinator.db.ready");
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(store->LoadJobs()->size(), 6u);
}

TEST_F(DamageTest, AWriteThatFailsLeavesTheSumsRight) {
  {
    auto store = Open();
    Fill(*store);
    Batch batch;
    batch.jobs.push_back(MakeJob("new", JobPhase::kQueued));
    batch.epochs.push_back({JobId("a"), Epoch(1), 0, {}});
    EXPECT_EQ(store->Commit(batch).code(), absl::StatusCode::kAlreadyExists);
    Batch good;
    good.jobs.push_back(MakeJob("a", JobPhase::kStopped));
    good.drains.push_back({NodeName("n7"), false});
    good.drains.push_back({NodeName("n8"), false});
    EXPECT_TRUE(store->Commit(good).ok());
  }
  EXPECT_EQ(Open()->findings(), 0);
}

}  // namespace
}  // namespace motley::coordinator
