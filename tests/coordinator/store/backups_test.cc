#include "coordinator/store/backups.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "coordinator/store/maintenance.h"
#include "tests/coordinator/store/store_fixture.h"

namespace motley::coordinator {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class BackupsTest : public StoreTest {
 protected:
  BackupsTest() {
    fs::create_directory(kept_);
    chmod(kept_.c_str(), 0700);
  }
  size_t Kept() const { return static_cast<size_t>(std::distance(fs::directory_iterator(kept_), fs::directory_iterator())); }

  const std::string kept_ = folder_ + "/kept";
};

TEST_F(BackupsTest, OfAStoreInUseCanBeRestoredElsewhere) {
  auto store = Open();
  Batch batch;
  batch.drains.push_back({NodeName("n3"), true});
  ASSERT_TRUE(store->Commit(batch).ok());
  const auto path = AddBackup(folder_, kept_, {store->mark().store_id, 1}, 1'700'000'000'000);
  ASSERT_TRUE(path.ok()) << path.status();
  struct stat found;
  ASSERT_EQ(stat(path->c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u) << "the cluster's keys are in it";
  const std::string elsewhere = folder_ + "/elsewhere";
  ASSERT_TRUE(RestoreStore(elsewhere, {*path}).ok());
  auto restored = SqliteStore::Open(elsewhere);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ((*restored)->LoadDrained()->at(0).value(), "n3");
}

TEST_F(BackupsTest, TheNewestStayAndOthersFilesToo) {
  auto store = Open();
  const BackupOwner id = {store->mark().store_id, 1};
  std::ofstream(kept_ + "/notes.txt") << "mine";
  std::ofstream(absl::StrCat(kept_, "/", BackupName({"another0store000", 1}, 1))) << "of another store";
  for (int i = 0; i < static_cast<int>(kBackupsKept) + 3; ++i)
    ASSERT_TRUE(AddBackup(folder_, kept_, id, 1'700'000'000'000 + i).ok()) << i;
  EXPECT_EQ(Kept(), kBackupsKept + 2);
  EXPECT_FALSE(fs::exists(absl::StrCat(kept_, "/", BackupName(id, 1'700'000'000'002))));
  EXPECT_TRUE(fs::exists(absl::StrCat(kept_, "/", BackupName(id, 1'700'000'000'003))));
  EXPECT_TRUE(fs::exists(kept_ + "/notes.txt"));
}

// The one from before goes on writing for a moment, and its clock is ahead.
TEST_F(BackupsTest, AReplacedCoordinatorNeitherHidesNorRemovesItsSuccessors) {
  auto store = Open();
  const BackupOwner old = {store->mark().store_id, 9}, successor = {store->mark().store_id, 10};
  const std::string half = absl::StrCat(kept_, "/", BackupName(successor, 5), ".partial");
  std::ofstream(half.c_str()) << "being written";
  const auto newest = AddBackup(folder_, kept_, {store->mark().store_id, 10}, 1'700'000'000'000);
  ASSERT_TRUE(newest.ok()) << newest.status();
  std::ofstream(half.c_str()) << "being written";
  for (int i = 0; i < static_cast<int>(kBackupsKept) + 3; ++i)
    ASSERT_TRUE(AddBackup(folder_, kept_, old, 1'900'000'000'000 + i).ok()) << i;
  EXPECT_EQ(NewestBackup(kept_).value(), *newest);
  EXPECT_TRUE(fs::exists(half));
}

TEST_F(BackupsTest, AClockThatWasSetBackLosesNoBackup) {
  auto store = Open();
  const BackupOwner id = {store->mark().store_id, 1};
  for (int i = 0; i < static_cast<int>(kBackupsKept); ++i) ASSERT_TRUE(AddBackup(folder_, kept_, id, 1'900'000'000'000 + i).ok());
  const auto path = AddBackup(folder_, kept_, id, 1'700'000'000'000);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_TRUE(fs::exists(*path));
  EXPECT_EQ(*path, absl::StrCat(kept_, "/", BackupName(id, 1'900'000'000'000 + static_cast<int>(kBackupsKept)))) << "the newest";
}

TEST_F(BackupsTest, WhatACrashLeftIsRemoved) {
  auto store = Open();
  const BackupOwner id = {store->mark().store_id, 1};
  const std::string half = absl::StrCat(kept_, "/", BackupName(id, 5), ".partial");
  std::ofstream(half) << "keys";
  std::ofstream(half + "-wal") << "keys";
  ASSERT_TRUE(AddBackup(folder_, kept_, id, 6).ok());
  EXPECT_EQ(Kept(), 1u);
}

TEST_F(BackupsTest, AFolderThatIsMissingOrOpenToAllIsRefused) {
  auto store = Open();
  const BackupOwner id = {store->mark().store_id, 1};
  EXPECT_EQ(AddBackup(folder_, folder_ + "/nowhere", id, 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(fs::exists(folder_ + "/nowhere")) << "a share may be missing";
  chmod(kept_.c_str(), 0770);
  EXPECT_EQ(AddBackup(folder_, kept_, id, 1).status().code(), absl::StatusCode::kPermissionDenied) << "its group";
  chmod(kept_.c_str(), 0777);
  const absl::Status open_to_all = AddBackup(folder_, kept_, id, 1).status();
  EXPECT_EQ(open_to_all.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(open_to_all.message()), HasSubstr("chmod 0700"));
  EXPECT_EQ(AddBackup(folder_, Db(), id, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Kept(), 0u);
}

}  // namespace
}  // namespace motley::coordinator
