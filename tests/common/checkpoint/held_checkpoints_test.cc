#include "common/checkpoint/held_checkpoints.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/fault.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/mark_file.h"
#include "tests/common/base/no_descriptors.h"
#include "tests/common/checkpoint/local_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

HeldCheckpoints HeldIn(const std::string& root, const JobUid& uid = kOneUid) {
  auto held = LookForHeldCheckpoints(root, uid);
  EXPECT_TRUE(held.ok()) << held.status();
  return held.ok() ? *std::move(held) : HeldCheckpoints();
}

std::vector<std::string> HeldNames(const std::string& root, const JobUid& uid = kOneUid) {
  std::vector<std::string> names;
  for (const HeldCheckpoint& one : HeldIn(root, uid).checkpoints) names.push_back(one.name);
  return names;
}

TEST(HeldCheckpointsTest, WhatEachNodeHasOfOne) {
  const TwoDisks disks;
  const auto manifest = disks.Save(40);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const std::string text = ManifestToJson(*manifest);
  for (int rank = 0; rank < 2; ++rank) {
    const HeldCheckpoints held = HeldIn(disks.Of(rank).path());
    const HeldCheckpoint expected = {.name = "step-00000040-gen-3",
                                     .manifest_digest = ManifestDigest(text),
                                     .mark = kOneMark,
                                     .epoch = Epoch(3),
                                     .step = 40,
                                     .model = ToHfConfig(TinyModel(true)),
                                     .dtype = "float32",
                                     .data_digest = "0123abcd",
                                     .seed = 42,
                                     .files = {{"rank-0.bin", manifest->files[0].bytes, rank == 0, "big"},
                                               {"rank-1.bin", manifest->files[1].bytes, rank == 1, "small"}}};
    ASSERT_EQ(held.checkpoints.size(), 1u);
    EXPECT_TRUE(held.checkpoints[0] == expected) << rank;
    EXPECT_TRUE(held.unpublished.empty());
  }
}

TEST(HeldCheckpointsTest, AFolderThatIsNotThereHoldsNothing) {
  const TempFolder root;
  EXPECT_TRUE(HeldIn(root / "absent") == HeldCheckpoints());
  EXPECT_TRUE(HeldIn(root.path()) == HeldCheckpoints());
}

TEST(HeldCheckpointsTest, AFileIsHereWithItsSizeAlone) {
  const TwoDisks disks;
  const auto manifest = disks.Save(40);
  ASSERT_TRUE(manifest.ok());
  const std::string folder = disks.big / NameOf(40), file = folder + "/rank-0.bin", whole = TempFolder::Read(file);
  const auto here = [&] { return HeldIn(disks.big.path()).checkpoints.at(0).files.at(0).here; };
  EXPECT_TRUE(here());
  fs::resize_file(file, whole.size() - 1);
  EXPECT_FALSE(here()) << "cut off";
  std::ofstream(file, std::ios::binary) << whole << "x";
  EXPECT_FALSE(here()) << "too long";
  fs::remove(file);
  EXPECT_FALSE(here());
  disks.big.Write("elsewhere", whole);
  fs::create_symlink(disks.big / "elsewhere", file);
  EXPECT_FALSE(here()) << "a link";
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(here()) << "a folder";
  fs::remove(file);
  std::ofstream(file, std::ios::binary) << std::string(whole.size(), 'x');
  EXPECT_TRUE(here()) << "nobody reads it";
}

TEST(HeldCheckpointsTest, TheNewestFirstAndUnmarkedOnesToo) {
  const TwoDisks disks;
  for (const int64_t step : {20, 60}) ASSERT_TRUE(disks.Save(step).ok());
  ASSERT_TRUE(disks.Save(40, LocalEpoch(4)).ok());
  EXPECT_EQ(HeldNames(disks.big.path()), (std::vector<std::string>{CheckpointFolderName(40, 4), NameOf(60), NameOf(20)}));
  fs::remove(disks.big / (NameOf(60) + "/mark"));
  disks.big.Write(NameOf(20) + "/mark", "something\n");
  const HeldCheckpoints held = HeldIn(disks.big.path());
  ASSERT_EQ(held.checkpoints.size(), 3u);
  EXPECT_EQ(held.checkpoints[0].mark, kOneMark);
  EXPECT_EQ(held.checkpoints[1].mark, "");
  EXPECT_EQ(held.checkpoints[2].mark, "");
}

TEST(HeldCheckpointsTest, OthersAreNotHeld) {
  const TwoDisks disks;
  const std::string root = disks.big.path();
  for (const int64_t step : {10, 20, 30, 40, 50}) ASSERT_TRUE(disks.Save(step).ok());
  // Damaged, and without a manifest.
  fs::resize_file(disks.big / (NameOf(20) + "/manifest.json"), 99);
  fs::remove(disks.big / (NameOf(30) + "/manifest.json"));
  // Renamed, and a copy: by step, by generation, and with a uid.
  fs::rename(disks.big / NameOf(40), disks.big / NameOf(41));
  fs::copy(disks.big / NameOf(50), disks.big / CheckpointFolderName(50, 4), fs::copy_options::recursive);
  fs::copy(disks.big / NameOf(50), disks.big / CheckpointFolderName(50, 3, kOneUid), fs::copy_options::recursive);
  fs::copy(disks.big / NameOf(50), disks.big / OldNameOf(50), fs::copy_options::recursive);
  // Another job's, one of a shared folder, and of a newer format.
  ASSERT_TRUE(disks.Save(60, LocalEpoch(3, kOtherUid)).ok());
  ASSERT_TRUE(WriteTestCheckpoint(root, 70, TinyModel(true), 0.5, LocalEpoch()).ok());
  auto newer = disks.Save(80);
  ASSERT_TRUE(newer.ok());
  newer->format_version = 9;
  disks.big.Write(NameOf(80) + "/manifest.json", ManifestToJson(*newer));
  // A link, a file, and a manifest that is a pipe.
  fs::create_directory_symlink(disks.small / NameOf(50), disks.big / NameOf(90));
  disks.big.Write(NameOf(91), "x");
  fs::create_directory(disks.big / NameOf(92));
  ASSERT_EQ(::mkfifo((disks.big / (NameOf(92) + "/manifest.json")).c_str(), 0666), 0);
  EXPECT_EQ(HeldNames(root), (std::vector<std::string>{NameOf(50), NameOf(10)}));
  EXPECT_EQ(HeldNames(root, kOtherUid), std::vector<std::string>{NameOf(60)});
}

// Its name would make the node look, and link, elsewhere.
TEST(HeldCheckpointsTest, AManifestWhoseFilesLieElsewhereIsNone) {
  const TwoDisks disks;
  auto manifest = disks.Save(40);
  ASSERT_TRUE(manifest.ok());
  disks.big.Write("rank-0.bin", TempFolder::Read(disks.big / (NameOf(40) + "/rank-0.bin")));
  manifest->files[0].name = "../rank-0.bin";
  disks.big.Write(NameOf(40) + "/manifest.json", ManifestToJson(*manifest));
  EXPECT_TRUE(HeldNames(disks.big.path()).empty());
}

TEST(HeldCheckpointsTest, AtMostTheNewestOnesThatCount) {
  const TwoDisks disks;
  auto manifest = disks.Save(1);
  ASSERT_TRUE(manifest.ok());
  const int64_t last = static_cast<int64_t>(kMostHeldCheckpoints) + 3;
  for (int64_t step = 2; step <= last; ++step) {
    manifest->step = step;
    disks.small.Write(NameOf(step) + "/manifest.json", step == last ? "{" : ManifestToJson(*manifest));
  }
  disks.small.Write(TemporaryCheckpointFolderName(1, 2, kOneUid) + "/rank-1.bin", "old");
  const HeldCheckpoints held = HeldIn(disks.small.path());
  ASSERT_EQ(held.checkpoints.size(), kMostHeldCheckpoints);
  EXPECT_EQ(held.checkpoints.front().step, last - 1) << "the newest is damaged";
  EXPECT_EQ(held.checkpoints.back().step, 3);
  EXPECT_EQ(held.unpublished.size(), 1u) << "behind them";
}

TEST(HeldCheckpointsTest, WhatWasNotPublished) {
  const TwoDisks disks;
  const auto manifest = disks.Write(60);
  ASSERT_TRUE(manifest.ok());
  const std::string folder = TemporaryCheckpointFolderName(60, 3, kOneUid);
  for (const char* name : {"rank-17.bin", "rank-.bin", "rank-x.bin", "rank-1.bin.partial", "xrank-1.bin", "manifest.json"}) {
    disks.big.Write(folder + "/" + name, "seven..");
  }
  fs::create_directory(disks.big / (folder + "/rank-3.bin"));
  fs::create_symlink("rank-0.bin", disks.big / (folder + "/rank-4.bin"));
  // Of others, and of what is being deleted; one with nothing in it.
  for (const std::string& other : {TemporaryCheckpointFolderName(60, 3), TemporaryCheckpointFolderName(60, 3, kOtherUid),
                                   folder + ".trash", std::string(".tmp-step-00000060-epoch-3")}) {
    disks.big.Write(other + "/rank-0.bin", "x");
  }
  fs::create_directory(disks.big / TemporaryCheckpointFolderName(80, 3, kOneUid));
  const HeldCheckpoints held = HeldIn(disks.big.path());
  EXPECT_TRUE(held.checkpoints.empty());
  ASSERT_EQ(held.unpublished.size(), 1u);
  const UnpublishedFiles expected = {
      .epoch = Epoch(3), .step = 60, .files = {{"rank-0.bin", manifest->files[0].bytes, true}, {"rank-17.bin", 7, true}}};
  EXPECT_TRUE(held.unpublished[0] == expected);
}

// A node's ranks may own nothing, and the manifest of many ranks is large.
TEST(HeldCheckpointsTest, AManifestMayBeLargerThanTheFilesHere) {
  const TwoDisks disks;
  auto manifest = disks.Save(40);
  ASSERT_TRUE(manifest.ok());
  manifest->data_digest = std::string(5 << 20, 'd');
  disks.small.Write(NameOf(40) + "/manifest.json", ManifestToJson(*manifest));
  EXPECT_EQ(HeldNames(disks.small.path()), std::vector<std::string>{NameOf(40)});
}

TEST(HeldCheckpointsTest, WhatCannotBeReadNowSaysSo) {
  const TwoDisks disks;
  ASSERT_TRUE(disks.Save(40).ok());
  const NoDescriptors none;
  const auto held = LookForHeldCheckpoints(disks.big.path(), kOneUid);
  EXPECT_EQ(FaultOf(held.status()), Fault::kStorage) << held.status();
}

}  // namespace
}  // namespace motley
