#include "common/checkpoint/local_checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/base/fault.h"
#include "common/checkpoint/held_checkpoints.h"
#include "common/checkpoint/mark_file.h"
#include "tests/common/checkpoint/local_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;
using NameSet = std::set<std::string>;

// Must not be asked: who has the mark was allowed to.
CheckpointFence Unasked(int64_t epoch = 3) {
  CheckpointFence fence = LocalEpoch(epoch);
  fence.confirm = [](const std::string& purpose) { return absl::InternalError("asked to " + purpose); };
  return fence;
}

absl::StatusOr<std::string> PublishOn(const TempFolder& root, const CheckpointManifest& manifest, const CheckpointFence& fence) {
  return PublishLocalCheckpoint(root.path(), manifest, ManifestToJson(manifest), kOneMark, fence);
}

// What is there can be gone on from: this node's file is whole, and stands under manifest and mark.
void ExpectHeld(const TempFolder& root, const std::string& name, const std::string& file) {
  const auto held = LookForHeldCheckpoints(root.path(), kOneUid);
  ASSERT_TRUE(held.ok()) << held.status();
  for (const HeldCheckpoint& one : held->checkpoints) {
    if (one.name != name) continue;
    EXPECT_EQ(one.mark, kOneMark) << name;
    for (const HeldFile& there : one.files) EXPECT_EQ(there.here, there.name == file) << name << ", " << there.name;
    return;
  }
  FAIL() << name << " is not held";
}

TEST(LocalCheckpointTest, EachNodePublishesBeneathItsOwnRoot) {
  const TwoDisks disks;
  const auto manifest = disks.Write(40);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  for (int rank = 0; rank < 2; ++rank) {
    const auto published = PublishOn(disks.Of(rank), *manifest, Unasked());
    ASSERT_TRUE(published.ok()) << published.status();
    const std::string folder = disks.Of(rank) / NameOf(40), file = "rank-" + std::to_string(rank) + ".bin";
    EXPECT_EQ(*published, folder);
    EXPECT_EQ(NamesIn(folder), (NameSet{"manifest.json", "mark", file}));
    EXPECT_EQ(NamesIn(disks.Of(rank).path()), NameSet{NameOf(40)});
    EXPECT_EQ(TempFolder::Read(folder + "/manifest.json"), ManifestToJson(*manifest)) << "as it was given";
    ExpectHeld(disks.Of(rank), NameOf(40), file);
    EXPECT_EQ(VerifyStructure(folder, *manifest).code(), absl::StatusCode::kNotFound) << "the other's file is elsewhere";
  }
  fs::copy(disks.small / (NameOf(40) + "/rank-1.bin"), disks.big / NameOf(40));
  EXPECT_TRUE(VerifyCheckpoint(disks.big / NameOf(40), *manifest).ok()) << "a full folder is a checkpoint";
}

// Who looks in one node's folder alone: an export, or a job with a shared folder.
TEST(LocalCheckpointTest, APartOfOneIsPassedOverAndNotDeleted) {
  const TwoDisks disks;
  for (const int64_t step : {20, 40}) ASSERT_TRUE(disks.Save(step).ok());
  EXPECT_EQ(FindNewestCheckpoint(disks.big.path(), {}).status().code(), absl::StatusCode::kDataLoss);
  fs::copy(disks.small / (NameOf(20) + "/rank-1.bin"), disks.big / NameOf(20));
  const auto found = FindNewestCheckpoint(disks.big.path(), {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->manifest.step, 20);
  ASSERT_EQ(found->skipped.size(), 1u);
  EXPECT_NE(found->skipped[0].find("rank-1.bin is missing"), std::string::npos) << found->skipped[0];
  ASSERT_TRUE(PruneCheckpoints(disks.big.path(), 1, 40, LocalEpoch()).ok());
  EXPECT_EQ(NamesIn(disks.big.path()), (NameSet{NameOf(20), NameOf(40)}));
}

TEST(LocalCheckpointTest, ANodeWhoseRanksOwnNothingHasTheManifest) {
  const TwoDisks disks;
  const TempFolder third;
  const auto manifest = disks.Write(40);
  ASSERT_TRUE(manifest.ok());
  ASSERT_TRUE(PublishOn(third, *manifest, Unasked()).ok());
  EXPECT_EQ(NamesIn(third / NameOf(40)), (NameSet{"manifest.json", "mark"}));
  ExpectHeld(third, NameOf(40), "");
}

TEST(LocalCheckpointTest, AnEarlierTryIsReplaced) {
  const TwoDisks disks;
  ASSERT_TRUE(disks.Save(40).ok());
  auto manifest = disks.Write(40);
  ASSERT_TRUE(manifest.ok());
  manifest->seed = 43;
  const auto published = PublishLocalCheckpoint(disks.big.path(), *manifest, ManifestToJson(*manifest), kOtherMark, Unasked());
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(NamesIn(disks.big.path()), NameSet{NameOf(40)});
  const auto held = LookForHeldCheckpoints(disks.big.path(), kOneUid);
  ASSERT_TRUE(held.ok());
  ASSERT_EQ(held->checkpoints.size(), 1u);
  EXPECT_EQ(held->checkpoints[0].seed, 43);
  EXPECT_EQ(held->checkpoints[0].mark, kOtherMark);
}

// A second name would be no checkpoint of this job's.
TEST(LocalCheckpointTest, WhatElseHasTheNameStays) {
  const TwoDisks disks;
  ASSERT_TRUE(disks.Save(40, LocalEpoch(3, kOtherUid)).ok());
  const auto manifest = disks.Write(40);
  ASSERT_TRUE(manifest.ok());
  const auto published = PublishOn(disks.big, *manifest, Unasked());
  EXPECT_EQ(FaultOf(published.status()), Fault::kStorage) << published.status();
  EXPECT_NE(Message(published.status()).find(disks.big / NameOf(40) + " is there already"), std::string::npos);
  const auto theirs = LookForHeldCheckpoints(disks.big.path(), kOtherUid);
  ASSERT_TRUE(theirs.ok());
  EXPECT_EQ(theirs->checkpoints.size(), 1u);
  EXPECT_FALSE(fs::exists(disks.big / CheckpointFolderName(40, 3, kOneUid)));
}

// Whose generation is the newest the coordinator says, by its mark: what lies there of a later one may be anybody's.
TEST(LocalCheckpointTest, AFolderOfALaterGenerationStopsNobody) {
  const TwoDisks disks;
  ASSERT_TRUE(disks.Save(20, LocalEpoch(4)).ok());
  const auto manifest = disks.Write(40);
  ASSERT_TRUE(manifest.ok());
  const auto published = PublishOn(disks.big, *manifest, Unasked());
  EXPECT_TRUE(published.ok()) << published.status();
  EXPECT_TRUE(fs::exists(disks.big / NameOf(40)));
}

TEST(LocalCheckpointTest, WithoutAMarkOrARootNothingIsPublished) {
  const TwoDisks disks;
  const auto manifest = disks.Write(40);
  ASSERT_TRUE(manifest.ok());
  for (const std::string& mark : {std::string(), std::string("yes"), std::string(32, 'A')}) {
    const auto published = PublishLocalCheckpoint(disks.big.path(), *manifest, ManifestToJson(*manifest), mark, Unasked());
    EXPECT_EQ(published.status().code(), absl::StatusCode::kInvalidArgument) << published.status();
  }
  EXPECT_FALSE(fs::exists(disks.big / NameOf(40)));
  const auto absent = PublishLocalCheckpoint(disks.big / "absent", *manifest, ManifestToJson(*manifest), kOneMark, Unasked());
  EXPECT_EQ(FaultOf(absent.status()), Fault::kStorage) << absent.status();
}

// Each operation refused once, of a first save and of one that replaces an earlier try.
TEST(LocalCheckpointTest, ARefusedOperationLosesNothing) {
  for (const bool again : {false, true}) {
    int refused = 0;
    for (bool done = false; !done; ++refused) {
      SCOPED_TRACE(testing::Message() << "refused " << refused << (again ? ", again" : ""));
      const TwoDisks disks;
      ASSERT_TRUE(disks.Save(20, LocalEpoch(2)).ok());
      ASSERT_TRUE(!again || disks.Save(40).ok());
      const auto manifest = disks.Write(40);
      ASSERT_TRUE(manifest.ok());
      int operations = 0;
      CheckpointFence fence = Unasked();
      fence.before = [&](const std::string& operation) {
        return operations++ == refused ? absl::ResourceExhaustedError("refused to " + operation) : absl::OkStatus();
      };
      const auto published = PublishOn(disks.big, *manifest, fence);
      done = operations <= refused;
      EXPECT_EQ(published.ok(), done) << published.status();
      ExpectHeld(disks.big, CheckpointFolderName(20, 2), "rank-0.bin");
      // The next try of the save comes to its end, whatever this one left.
      ASSERT_TRUE(disks.Write(40).ok());
      ASSERT_TRUE(PublishOn(disks.big, *manifest, Unasked()).ok());
      ExpectHeld(disks.big, NameOf(40), "rank-0.bin");
      ExpectHeld(disks.big, CheckpointFolderName(20, 2), "rank-0.bin");
    }
    EXPECT_EQ(refused, again ? 9 : 6) << "make, manifest, mark, rename, sync; and what has the name away, and deleted";
  }
}

// Of this job's own checkpoint of that step and generation.
LocalDrop DropOf(const TempFolder& root, int64_t step, int64_t epoch = 3) {
  return {step, epoch, ManifestDigest(TempFolder::Read(root / (CheckpointFolderName(step, epoch) + "/manifest.json")))};
}

TEST(LocalDropTest, WhatIsNamedGoesHereAlone) {
  const TwoDisks disks;
  for (const int64_t step : {20, 40, 60, 80}) ASSERT_TRUE(disks.Save(step).ok());
  const std::vector<LocalDrop> drops = {DropOf(disks.small, 20), DropOf(disks.small, 60)};
  ASSERT_TRUE(DropLocalCheckpoints(disks.small.path(), drops, LocalEpoch()).ok());
  EXPECT_EQ(NamesIn(disks.small.path()), (NameSet{NameOf(40), NameOf(80)}));
  EXPECT_EQ(NamesIn(disks.big.path()).size(), 4u) << "each node its own";
  EXPECT_TRUE(DropLocalCheckpoints(disks.small.path(), drops, LocalEpoch()).ok()) << "gone already";
}

// The command was given for what the node said: something else may have the name by now.
TEST(LocalDropTest, WhatIsAnotherOneOrOfANewerGenerationStays) {
  const TwoDisks disks;
  for (const int64_t step : {20, 40}) ASSERT_TRUE(disks.Save(step).ok());
  ASSERT_TRUE(disks.Save(60, LocalEpoch(4)).ok());
  std::vector<LocalDrop> drops = {DropOf(disks.big, 20), DropOf(disks.big, 40), DropOf(disks.big, 60, 4)};
  drops[0].manifest_digest = drops[1].manifest_digest;
  disks.big.Write(NameOf(40) + "/manifest.json", "{");
  ASSERT_TRUE(DropLocalCheckpoints(disks.big.path(), drops, LocalEpoch()).ok());
  EXPECT_EQ(NamesIn(disks.big.path()).size(), 3u);
}

TEST(LocalDropTest, WhatHasNoNameGoesWhereItsRanksAreGone) {
  const TwoDisks disks;
  ASSERT_TRUE(disks.Save(20).ok());
  const std::string own = TemporaryCheckpointFolderName(40, 3, kOneUid), old = TemporaryCheckpointFolderName(40, 2, kOneUid),
                    older = TemporaryCheckpointFolderName(40, 1, kOneUid), trash = old + ".trash",
                    theirs = TemporaryCheckpointFolderName(40, 2, kOtherUid);
  for (const std::string& name : {own, old, older, trash, theirs}) disks.big.Write(name + "/rank-0.bin", "x");
  ASSERT_TRUE(DropLocalCheckpoints(disks.big.path(), {{40, 3, ""}, {40, 2, ""}}, LocalEpoch()).ok());
  EXPECT_EQ(NamesIn(disks.big.path()), (NameSet{NameOf(20), own, older, theirs})) << "a deletion that was cut off is ended, too";
}

TEST(LocalDropTest, WhatCannotGoDoesNotKeepTheRest) {
  const TwoDisks disks;
  for (const int64_t step : {20, 40}) ASSERT_TRUE(disks.Save(step).ok());
  CheckpointFence fence = LocalEpoch();
  int operations = 0;
  fence.before = [&](const std::string& operation) {
    return operations++ == 0 ? absl::PermissionDeniedError(operation) : absl::OkStatus();
  };
  const auto dropped = DropLocalCheckpoints(disks.big.path(), {DropOf(disks.big, 20), DropOf(disks.big, 40)}, fence);
  EXPECT_EQ(dropped.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(NamesIn(disks.big.path()), NameSet{NameOf(20)});
}

}  // namespace
}  // namespace motley
