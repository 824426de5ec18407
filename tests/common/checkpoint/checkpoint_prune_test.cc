#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

std::set<std::string> Names(const std::string& root) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(root)) names.insert(entry.path().filename().string());
  return names;
}

TEST(CheckpointPruneTest, KeepsTheNewestAndWhatIsNotOurs) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60, 100000000})
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  for (const char* name : {".tmp-step-00000080-gen-2", ".tmp-step-00000080-gen-2.trash", ".tmp-step-00000080-epoch-2.trash-0",
                           ".tmp-step-00000070-epoch-1", ".tmp-step-00000080-gen-3", "mine"}) {
    root.Write(std::string(name) + "/x", "x");
  }
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 100000000, NewestEpoch()).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{NameOf(60), NameOf(100000000), ".tmp-step-00000080-gen-3", "mine"}));
}

TEST(CheckpointPruneTest, WhatDidNotVerifyDoesNotCountAmongTheNewest) {
  TempFolder root;
  for (const int64_t step : {20, 30, 40, 60, 80}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 40, NewestEpoch()).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{NameOf(30), NameOf(40)}));
}

// It may be the reader that is damaged.
TEST(CheckpointPruneTest, WhatOneReaderAloneFoundDamagedStaysUntilTheRunHasComeToIt) {
  TempFolder root;
  for (const int64_t step : {20, 30, 40, 60, 80}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  const std::set<std::string> spared = {root / NameOf(80)};
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 40, NewestEpoch(), spared).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{NameOf(30), NameOf(40), NameOf(80)}))
      << "nor does it count among the newest";
  ASSERT_TRUE(PruneCheckpoints(root.path(), 1, 80, NewestEpoch(), spared).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{NameOf(80)}));
}

TEST(CheckpointPruneTest, ZeroKeepsAll) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  ASSERT_TRUE(PruneCheckpoints(root.path(), 0, 20, NewestEpoch()).ok());
  EXPECT_EQ(Names(root.path()).size(), 3u);
  EXPECT_EQ(PruneCheckpoints(root / "absent", 2, 0, NewestEpoch()).code(), absl::StatusCode::kNotFound);
}

TEST(CheckpointPruneTest, DamagedManifestsAreNotAmongTheNewest) {
  TempFolder root;
  for (const int64_t step : {20, 30, 40, 60}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  root.Write("step-00000040-gen-3/manifest.json", "{");
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 60, NewestEpoch()).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{NameOf(30), NameOf(40), NameOf(60)}));
}

// A save without all its files pushed the good ones out.
TEST(CheckpointPruneTest, WhatLacksFilesIsNotAmongTheNewest) {
  TempFolder root;
  for (const int64_t step : {20, 30, 40, 50, 60}) {
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  }
  fs::remove(root / "step-00000050-gen-3/rank-1.bin");
  fs::resize_file(root / "step-00000040-gen-3/rank-0.bin", 9);
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 60, NewestEpoch()).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{NameOf(30), NameOf(40), NameOf(50), NameOf(60)}));
  ASSERT_TRUE(PruneCheckpoints(root.path(), 1, 60, NewestEpoch()).ok());
  EXPECT_EQ(Names(root.path()), std::set<std::string>{NameOf(60)});
}

// Somebody put them there: they count for nothing, and stay.
TEST(CheckpointPruneTest, AnotherJobsCheckpointsAreNotOurs) {
  TempFolder root, other;
  for (const int64_t step : {20, 30, 40}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  const auto theirs = WriteTestCheckpoint(other.path(), 35, TinyModel(true), 0.5, NewestEpoch(9));
  ASSERT_TRUE(theirs.ok());
  CheckpointManifest manifest = *theirs;
  manifest.job = "job-2";
  const std::string name = CheckpointFolderName(35, 9);
  other.Write(name + "/manifest.json", ManifestToJson(manifest));
  fs::copy(other / name, root / name);
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 40, NewestEpoch()).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{NameOf(30), name, NameOf(40)}));
}

TEST(CheckpointPruneTest, AnEpochThatIsNotTheNewestDeletesNothing) {
  TempFolder root;
  for (const int64_t step : {20, 40}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 60, TinyModel(true), 0.5, NewestEpoch(4)).ok());
  std::vector<std::string> asked;
  CheckpointFence fence = NewestEpoch(3);
  fence.confirm = [&](const std::string& purpose) {
    asked.push_back(purpose);
    return absl::FailedPreconditionError("stale");
  };
  EXPECT_EQ(PruneCheckpoints(root.path(), 1, 40, fence).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(asked.empty()) << "the manifest of epoch 4 says enough";
  fence.epoch = 4;
  EXPECT_EQ(PruneCheckpoints(root.path(), 1, 60, fence).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(asked, std::vector<std::string>{"delete " + NameOf(40)});
  EXPECT_EQ(Names(root.path()).size(), 3u);
}

// It came late, or was left behind: among the newest it would push out what is newer.
TEST(CheckpointPruneTest, WhatIsNotBelowANewerEpochsDoesNotCount) {
  TempFolder root;
  const auto save = [&](int64_t step, int64_t epoch) {
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5, NewestEpoch(epoch)).ok());
  };
  for (const int64_t step : {20, 40}) save(step, 2);
  for (const int64_t step : {40, 60, 80}) save(step, 3);
  for (const int64_t step : {50, 70}) save(step, 4);
  ASSERT_TRUE(PruneCheckpoints(root.path(), 3, 70, NewestEpoch(4)).ok());
  EXPECT_EQ(Names(root.path()),
            (std::set<std::string>{CheckpointFolderName(40, 3), CheckpointFolderName(50, 4), CheckpointFolderName(70, 4)}));
}

TEST(CheckpointPruneTest, OlderBuildsCheckpointsCountBehindAllOthers) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60, 80}) {
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5, NewestEpoch(step == 80 ? 4 : 3)).ok());
    if (step < 80) fs::rename(root / NameOf(step), root / OldNameOf(step));
  }
  ASSERT_TRUE(PruneCheckpoints(root.path(), 3, 80, NewestEpoch(4)).ok());
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{OldNameOf(40), OldNameOf(60), CheckpointFolderName(80, 4)}));
  EXPECT_EQ(PruneCheckpoints(root.path(), 1, 80, NewestEpoch(2)).code(), absl::StatusCode::kFailedPrecondition);
  fs::remove_all(root / CheckpointFolderName(80, 4));
  EXPECT_EQ(PruneCheckpoints(root.path(), 1, 60, NewestEpoch(2)).code(), absl::StatusCode::kFailedPrecondition)
      << "the manifests of epoch 3 say enough";
  EXPECT_EQ(Names(root.path()), (std::set<std::string>{OldNameOf(40), OldNameOf(60)}));
}

TEST(CheckpointPruneTest, WhatWasNeverPublishedIsNoCheckpoint) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5).ok());
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5).ok());
  fs::rename(root / NameOf(40), root / ".tmp-step-00000040-gen-3");  // complete, by epoch 3 itself
  auto found = FindNewestCheckpoint(root.path(), {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->manifest.step, 20);
  EXPECT_TRUE(found->skipped.empty());
  ASSERT_TRUE(PruneCheckpoints(root.path(), 0, 20, NewestEpoch(4)).ok());
  EXPECT_EQ(Names(root.path()), std::set<std::string>{NameOf(20)});
}

}  // namespace
}  // namespace motley
