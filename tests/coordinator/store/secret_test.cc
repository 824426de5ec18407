// The secret by which a store knows the numbers that it gave: made once, in every copy, never in another store.
#include <filesystem>

#include "coordinator/store/ledger.h"
#include "coordinator/store/maintenance.h"
#include "coordinator/store/mark_file.h"
#include "coordinator/store/records.h"
#include "tests/coordinator/store/store_fixture.h"

namespace motley::coordinator {
namespace {

namespace fs = std::filesystem;

class SecretTest : public StoreTest {
 protected:
  static void Commit(SqliteStore& store, const std::string& id) {
    Batch batch;
    batch.jobs.resize(1);
    batch.jobs[0].id = JobId(id);
    batch.jobs[0].phase = JobPhase::kRunning;
    ASSERT_TRUE(store.Commit(batch).ok());
  }
};

TEST_F(SecretTest, ItIsMadeOnceAndAnotherStoreHasAnother) {
  const std::string secret = Open()->secret();
  EXPECT_EQ(secret.size(), 64u);
  Commit(*Open(), "a");
  EXPECT_EQ(Open()->secret(), secret);
  EXPECT_EQ(Open()->findings(), 0);
  const auto other = SqliteStore::Open(folder_ + "/other");
  ASSERT_TRUE(other.ok());
  EXPECT_NE((*other)->secret(), secret);
}

TEST_F(SecretTest, OlderCopiesAndBackupsHaveIt) {
  const std::string secret = Open()->secret();
  Commit(*Open(), "a");
  fs::copy_file(Db(), folder_ + "/older");
  ASSERT_TRUE(BackUpStore(folder_, folder_ + "/backup").ok());
  Commit(*Open(), "b");
  fs::copy_file(folder_ + "/older", Db(), fs::copy_options::overwrite_existing);
  EXPECT_EQ(Open()->secret(), secret);
  ASSERT_TRUE(RestoreStore(folder_, {folder_ + "/backup"}).ok());
  EXPECT_EQ(Open()->secret(), secret);
  ASSERT_TRUE(RestoreStore(folder_ + "/elsewhere", {folder_ + "/backup"}).ok());
  EXPECT_EQ((*SqliteStore::Open(folder_ + "/elsewhere"))->secret(), secret);
}

TEST_F(SecretTest, ADatabaseThatIsMadeAnewFromWhatIsSoundKeepsIt) {
  const std::string secret = Open()->secret();
  Commit(*Open(), "a");
  ASSERT_TRUE((*Database::Open(Db()))->Execute("UPDATE jobs SET step = 13").ok());
  auto store = Open();
  EXPECT_GT(store->findings(), 0);
  EXPECT_EQ(store->secret(), secret);
}

TEST_F(SecretTest, OneThatWasAlteredIsReplacedAndSaid) {
  const std::string secret = Open()->secret();
  Commit(*Open(), "a");
  ASSERT_TRUE((*Database::Open(Db()))->Execute("UPDATE mark SET secret = 'known'").ok());
  auto store = Open();
  EXPECT_GT(store->findings(), 0);
  EXPECT_EQ(store->secret().size(), 64u);
  EXPECT_NE(store->secret(), secret);
  EXPECT_EQ(store->LoadJobs()->size(), 1u);
}

TEST_F(SecretTest, AFileOfVersionFiveGetsOne) {
  {
    auto database = Database::Open(Db());
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->Execute(CreateSql(5)).ok());
    Ledger ledger(**database, 5);
    ledger.Reset({{"five", 6}, {}, ""});
    JobRecord job;
    job.id = JobId("old");
    job.step = 12;
    ASSERT_TRUE(ledger.Put(TableId::kJobs, RowOfVersion(5, job)).ok());
    ASSERT_TRUE(ledger.Seal().ok());
    ASSERT_TRUE((*MarkFile::Open(folder_ + "/coordinator.mark"))->Write(ledger.state().mark).ok());
  }
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(store->mark().store_id, "five");
  EXPECT_EQ(store->LoadJobs()->at(0).step, 12);
  const std::string secret = store->secret();
  EXPECT_EQ(secret.size(), 64u);
  store.reset();
  EXPECT_EQ(Open()->secret(), secret) << "once";
}

}  // namespace
}  // namespace motley::coordinator
