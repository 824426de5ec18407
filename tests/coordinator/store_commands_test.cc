// The store's commands over real files: what they do, what they print, and their exit codes.
#include "coordinator/store_commands.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/tls/term.h"
#include "coordinator/store/sqlite_store.h"

namespace motley::coordinator {
namespace {

namespace fs = std::filesystem;

class StoreCommandsTest : public testing::Test {
 protected:
  StoreCommandsTest() {
    std::string pattern = (fs::temp_directory_path() / "motley-commands-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    folder_ = root_ + "/state";
    backup_ = root_ + "/backup.db";
  }
  ~StoreCommandsTest() override { fs::remove_all(root_); }
  std::unique_ptr<SqliteStore> Open() {
    auto store = SqliteStore::Open(folder_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  static void Put(SqliteStore& store, const std::string& id, int64_t epoch) {
    Batch batch;
    batch.jobs.resize(1);
    batch.jobs[0].id = JobId(id);
    batch.jobs[0].epoch = Epoch(epoch);
    const absl::Status status = store.Commit(batch);
    ASSERT_TRUE(status.ok()) << status;
  }
  int Run(std::vector<const char*> words) {
    words.insert(words.begin(), "motley-coordinator");
    out_.str("");
    error_.str("");
    return RunStoreCommand(static_cast<int>(words.size()), words.data(), out_, error_).value_or(-1);
  }
  int Check() { return Run({"check", "--state-dir", folder_.c_str(), "-o", "json"}); }
  int BackUp() { return Run({"backup", "--state-dir", folder_.c_str(), "--to", backup_.c_str()}); }
  int Restore() { return Run({"restore", "--state-dir", folder_.c_str(), "--from", backup_.c_str(), "-o", "json"}); }
  nlohmann::json Said() { return nlohmann::json::parse(out_.str()); }

  std::string root_, folder_, backup_;
  std::ostringstream out_, error_;
};

TEST_F(StoreCommandsTest, OtherWordsAreNotCommands) {
  EXPECT_EQ(Run({"--listen", "127.0.0.1:0"}), -1);
  EXPECT_EQ(Run({}), -1);
  EXPECT_EQ(Run({"check", "--stat-dir", "x"}), 64);
  EXPECT_EQ(Run({"backup"}), 64) << "--to is missing";
  EXPECT_EQ(Run({"check", "--help"}), 0);
}

TEST_F(StoreCommandsTest, CheckSaysSoundDamagedInUseAndNone) {
  EXPECT_EQ(Check(), 66) << error_.str();
  EXPECT_FALSE(fs::exists(folder_)) << "a check makes nothing";
  {
    auto store = Open();
    Put(*store, "a", 1);
    EXPECT_EQ(Check(), 69) << error_.str();
  }
  EXPECT_EQ(Check(), 0) << error_.str();
  EXPECT_EQ(Said()["rows"]["jobs"], 1);
  EXPECT_EQ(Said()["sound"], true);
  {
    auto database = Database::Open(folder_ + "/coordinator.db");
    ASSERT_TRUE((*database)->Execute("UPDATE jobs SET step = 5").ok());
  }
  EXPECT_EQ(Check(), 65);
  EXPECT_EQ(Said()["sound"], false);
  EXPECT_TRUE(
      absl::StrContains(Said()["findings"][0]["text"].get<std::string>(), "table jobs: 1 row is not what was written ('a')"));
  EXPECT_EQ(Check(), 65) << "it changes nothing";
  EXPECT_EQ(Run({"check", "--state-dir", folder_.c_str()}), 65);
  EXPECT_TRUE(absl::StrContains(out_.str(), "not what was written")) << out_.str();
  fs::resize_file(folder_ + "/coordinator.db", 0);
  EXPECT_EQ(Check(), 65) << error_.str();
  EXPECT_TRUE(absl::StrContains(error_.str(), "holds nothing")) << error_.str();
  std::ofstream(folder_ + "/coordinator.db") << std::string(5000, 'x');
  EXPECT_EQ(Check(), 65) << error_.str();
}

TEST_F(StoreCommandsTest, CheckSeesWhatIsInTheLogAndLeavesItThere) {
  auto store = Open();
  Put(*store, "a", 1);
  const std::string killed = root_ + "/killed";
  fs::create_directories(killed);
  for (const char* name : {"/coordinator.db", "/coordinator.db-wal", "/coordinator.mark"})
    fs::copy_file(folder_ + name, killed + name);
  const auto log_bytes = fs::file_size(killed + "/coordinator.db-wal");
  EXPECT_EQ(Run({"check", "--state-dir", killed.c_str(), "-o", "json"}), 0) << out_.str() << error_.str();
  EXPECT_EQ(Said()["rows"]["jobs"], 1);
  EXPECT_EQ(fs::file_size(killed + "/coordinator.db-wal"), log_bytes);
}

TEST_F(StoreCommandsTest, ABackupOfARunningStoreIsWhole) {
  auto store = Open();
  Put(*store, "before", 1);
  std::atomic<bool> over = false;
  std::thread writer([&] {
    for (int64_t i = 0; !over; ++i) Put(*store, absl::StrCat("j", i % 50), i);
  });
  EXPECT_EQ(BackUp(), 0) << error_.str();
  over = true;
  writer.join();
  EXPECT_EQ(BackUp(), 73) << "the name is taken";
  store.reset();
  const std::string other = root_ + "/other";
  EXPECT_EQ(Run({"restore", "--state-dir", other.c_str(), "--from", backup_.c_str()}), 0) << error_.str();
  auto restored = SqliteStore::Open(other);
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ((*restored)->findings(), 0);
  EXPECT_EQ((*restored)->LoadJobs()->front().id, JobId("before"));
}

TEST_F(StoreCommandsTest, ARestoredStoreGoesOnAboveWhatIsLost) {
  {
    auto store = Open();
    Put(*store, "a", 3);
    ASSERT_EQ(BackUp(), 0) << error_.str();
    for (int64_t epoch = 4; epoch < 14; ++epoch) Put(*store, "a", epoch);
    EXPECT_EQ(Restore(), 69) << "it is in use";
  }
  ASSERT_EQ(Restore(), 0) << error_.str();
  EXPECT_EQ(Said()["lost_commits"], 10);
  EXPECT_EQ(Said()["raised_by"], 10);
  EXPECT_EQ(Said()["raised_jobs"], 1);
  EXPECT_TRUE(fs::exists(Said()["kept_as"].get<std::string>()));
  auto store = Open();
  EXPECT_EQ(store->findings(), 0) << "it was said: no surprise at the start";
  EXPECT_EQ(store->LoadJobs()->at(0).epoch, Epoch(13));
  EXPECT_EQ(store->EventsAfter(JobId(), 0, 10)->at(0).kind, kind::kStoreRestored);
}

TEST_F(StoreCommandsTest, ADamagedOrMissingBackupChangesNothing) {
  { Put(*Open(), "a", 3); }
  EXPECT_EQ(Restore(), 66) << error_.str();
  ASSERT_EQ(BackUp(), 0) << error_.str();
  {
    auto database = Database::Open(backup_);
    ASSERT_TRUE((*database)->Execute("UPDATE jobs SET epoch = 5").ok());
  }
  EXPECT_EQ(Restore(), 65);
  EXPECT_TRUE(absl::StrContains(error_.str(), "was not put in place")) << error_.str();
  EXPECT_EQ(Check(), 0) << out_.str();
}

// Another machine becomes the coordinator.
class TakeOverTest : public StoreCommandsTest {
 protected:
  TakeOverTest() {
    auto store = Open();
    Put(*store, "a", 5);
    Batch batch;
    batch.terms = {{{3, "5e0c4b29bb5a7fbd"}, true}, {{4, "0123456789abcdef"}, false}};
    EXPECT_TRUE(store->Commit(batch).ok());
    EXPECT_EQ(BackUp(), 0) << error_.str();
  }
  int TakeOver(const std::string& folder, const std::string& from) {
    return Run({"restore", "--state-dir", folder.c_str(), "--take-over", from.c_str(), "-o", "json"});
  }
  static std::vector<TermRecord> TermsIn(const std::string& folder) {
    const auto store = SqliteStore::Open(folder);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? (*store)->LoadTerms().value() : std::vector<TermRecord>();
  }
  const std::string elsewhere_ = root_ + "/elsewhere";
};

TEST_F(TakeOverTest, ItsTermIsAboveAllThatTheBackupKnows) {
  ASSERT_EQ(TakeOver(elsewhere_, backup_), 0) << error_.str();
  EXPECT_EQ(Said()["term"], 5);
  EXPECT_EQ(Said()["raised_by"], 1000);
  const std::vector<TermRecord> terms = TermsIn(elsewhere_);
  ASSERT_EQ(terms.size(), 3u);
  EXPECT_EQ(terms[2].term.number, 5);
  EXPECT_TRUE(terms[2].own);
}

// By the same backup again, say because workers follow another one of this number.
TEST_F(TakeOverTest, AgainItIsAboveWhatTheFolderHas) {
  ASSERT_EQ(TakeOver(elsewhere_, backup_), 0) << error_.str();
  ASSERT_EQ(TakeOver(elsewhere_, backup_), 0) << error_.str();
  EXPECT_EQ(Said()["term"], 6);
}

TEST_F(TakeOverTest, TwoMachinesHaveDifferentIds) {
  ASSERT_EQ(TakeOver(elsewhere_, backup_), 0) << error_.str();
  ASSERT_EQ(TakeOver(root_ + "/third", backup_), 0) << error_.str();
  EXPECT_EQ(Compare(TermsIn(elsewhere_).back().term, TermsIn(root_ + "/third").back().term), TermRelation::kRival);
}

// What the other one began after the backup is not known in a folder that was this cluster's long ago.
TEST_F(TakeOverTest, GenerationsGoUpByMoreThanAnOldFolderKnows) {
  ASSERT_EQ(TakeOver(elsewhere_, backup_), 0) << error_.str();
  const std::string newer = root_ + "/newer.db";
  {
    const auto store = SqliteStore::Open(elsewhere_);
    Put(**store, "a", 2000);
  }
  ASSERT_EQ(Run({"backup", "--state-dir", elsewhere_.c_str(), "--to", newer.c_str()}), 0) << error_.str();
  ASSERT_EQ(TakeOver(folder_, newer), 0) << error_.str();
  EXPECT_EQ(Said()["raised_by"], 1000);
  ASSERT_EQ(Run({"restore", "--state-dir", (root_ + "/fourth").c_str(), "--from", newer.c_str(), "-o", "json"}), 0)
      << error_.str();
  EXPECT_TRUE(Said()["term"].is_null()) << "a restore is no take-over";
}

TEST_F(TakeOverTest, OfAFolderTheNewestBackupIsTaken) {
  const std::string kept = root_ + "/kept";
  fs::create_directory(kept);
  EXPECT_EQ(TakeOver(elsewhere_, kept), 66) << error_.str();
  fs::copy_file(backup_, kept + "/motley-one-000003-000001700000000000.db");
  std::ofstream(kept + "/motley-one-000003-000001690000000000.db") << "an older one";
  std::ofstream(kept + "/motley-one-000003-000001800000000000.db.partial") << "half of one";
  ASSERT_EQ(TakeOver(elsewhere_, kept), 0) << error_.str();
  EXPECT_EQ(Said()["from"], kept + "/motley-one-000003-000001700000000000.db");
  std::ofstream(kept + "/motley-two-000001-000001700000000000.db") << "another store's";
  EXPECT_EQ(TakeOver(elsewhere_, kept), 78) << error_.str();
  EXPECT_TRUE(absl::StrContains(error_.str(), "motley-two-000001-000001700000000000.db")) << error_.str();
}

TEST_F(TakeOverTest, WhatIsNoBackupChangesNothing) {
  ASSERT_EQ(TakeOver(elsewhere_, backup_), 0) << error_.str();
  std::ofstream(root_ + "/half.db") << "no database";
  EXPECT_EQ(TakeOver(elsewhere_, root_ + "/half.db"), 65) << error_.str();
  EXPECT_EQ(TakeOver(elsewhere_, root_ + "/missing.db"), 66) << error_.str();
  EXPECT_EQ(TermsIn(elsewhere_).back().term.number, 5);
  EXPECT_EQ(Run({"restore", "--state-dir", elsewhere_.c_str()}), 64) << "which backup?";
  EXPECT_EQ(Run({"restore", "--state-dir", elsewhere_.c_str(), "--from", backup_.c_str(), "--take-over", backup_.c_str()}), 64);
}

}  // namespace
}  // namespace motley::coordinator
