// Two jobs of one id, of two clusters, in one folder.
#include "common/checkpoint/checkpoint_owner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "common/base/job_uid.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

void Write(const std::string& root, int64_t step, const CheckpointFence& fence, double share = 0.5) {
  const auto written = WriteTestCheckpoint(root, step, TinyModel(true), share, fence);
  ASSERT_TRUE(written.ok()) << written.status();
}

CheckpointManifest MadeBy(const std::string& job, const JobUid& uid) {
  CheckpointManifest manifest;
  manifest.job = job;
  manifest.job_uid = uid;
  return manifest;
}

TEST(CheckpointOwnerTest, UidsAreRandomHex) {
  const auto one = NewJobUid(), other = NewJobUid();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_TRUE(IsJobUid(one->value())) << *one;
  EXPECT_NE(*one, *other);
  for (const char* text : {"", "1", "1111111111111111111111111111111", "111111111111111111111111111111111",
                           "1111111111111111111111111111111G", "1111111111111111111111111111111/"}) {
    EXPECT_FALSE(IsJobUid(text)) << text;
  }
}

TEST(CheckpointOwnerTest, IdAndUidTogether) {
  const CheckpointOwner own{JobId("j"), kOneUid}, from_before{JobId("j"), kOneUid, true}, old{JobId("j"), JobUid()};
  EXPECT_TRUE(IsOwn(own, MadeBy("j", kOneUid)));
  EXPECT_FALSE(IsOwn(own, MadeBy("j", kOtherUid))) << "of another cluster";
  EXPECT_FALSE(IsOwn(own, MadeBy("k", kOneUid))) << "two jobs have the uid";
  EXPECT_FALSE(IsOwn(own, MadeBy("j", JobUid())));
  EXPECT_TRUE(IsOwn(from_before, MadeBy("j", JobUid())));
  EXPECT_FALSE(IsOwn(from_before, MadeBy("k", JobUid())));
  EXPECT_FALSE(IsOwn(from_before, MadeBy("j", kOtherUid)));
  EXPECT_TRUE(IsOwn(old, MadeBy("j", JobUid())));
  EXPECT_FALSE(IsOwn(old, MadeBy("j", kOneUid)));
  EXPECT_EQ(MakerOf(MadeBy("j", JobUid())), "job 'j'");
  EXPECT_EQ(MakerOf(MadeBy("j", kOneUid)), "job 'j' (uid 11111111111111111111111111111111)");
}

TEST(CheckpointOwnerTest, WhatAdoptsIt) {
  EXPECT_EQ(WordToAdopt(MadeBy("j", kOneUid)), kOneUid.value());
  EXPECT_EQ(WordToAdopt(MadeBy("j", JobUid())), "j");
}

TEST(CheckpointOwnerTest, TheManifestHoldsIt) {
  TempFolder root;
  Write(root.path(), 20, NewestEpoch(3, kOneUid));
  const std::string path = root / NameOf(20) + "/manifest.json";
  CheckpointManifest manifest = *ReadManifest(root / NameOf(20));
  EXPECT_EQ(manifest.job_uid, kOneUid);
  EXPECT_EQ(manifest.format_version, 3) << "builds from before read it";
  for (const char* odd : {"1", "../../../../../../../../../etc/x", "11111111111111111111111111111111\n"}) {
    manifest.job_uid = JobUid(odd);
    const absl::Status status = ManifestFromJson(ManifestToJson(manifest), path).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
  manifest.job_uid = JobUid();
  EXPECT_EQ(ManifestToJson(manifest).find("job_uid"), std::string::npos);
}

// Both begin in one empty folder, so that both save the same steps of the same generation.
TEST(CheckpointOwnerTest, TwoJobsThatSaveTheSameStepKeepBoth) {
  TempFolder root;
  const CheckpointFence one = NewestEpoch(3, kOneUid), other = NewestEpoch(3, kOtherUid);
  Write(root.path(), 20, one);
  Write(root.path(), 20, other, 0.25);
  const std::string second = CheckpointFolderName(20, 3, kOtherUid);
  EXPECT_EQ(NamesIn(root.path()), (std::set<std::string>{NameOf(20), second}));
  EXPECT_EQ(ReadManifest(root / NameOf(20))->job_uid, kOneUid);
  EXPECT_EQ(ReadManifest(root / second)->job_uid, kOtherUid);
  // Each tries its save again: its own try before goes, and nothing else.
  Write(root.path(), 20, other, 0.75);
  Write(root.path(), 20, one, 0.75);
  EXPECT_EQ(NamesIn(root.path()), (std::set<std::string>{NameOf(20), second}));
  for (const auto& [name, uid] : {std::pair(NameOf(20), kOneUid), std::pair(second, kOtherUid)}) {
    const auto manifest = ReadManifest(root / name);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(manifest->job_uid, uid);
    EXPECT_TRUE(VerifyCheckpoint(root / name, *manifest).ok());
  }
}

TEST(CheckpointOwnerTest, WhatNobodyKnowsIsNotReplaced) {
  TempFolder root;
  root.Write(NameOf(20) + "/notes.txt", "mine");
  Write(root.path(), 20, NewestEpoch(3, kOneUid));
  EXPECT_EQ(NamesIn(root.path()), (std::set<std::string>{NameOf(20), CheckpointFolderName(20, 3, kOneUid)}));
  EXPECT_FALSE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5, NewestEpoch(3)).ok())
      << "without a uid there is no other";
  EXPECT_TRUE(fs::exists(root / NameOf(20) + "/notes.txt"));
}

TEST(CheckpointOwnerTest, EachPrunesItsOwn) {
  TempFolder root;
  const CheckpointFence one = NewestEpoch(3, kOneUid), other = NewestEpoch(4, kOtherUid);
  for (const int64_t step : {20, 40, 60}) Write(root.path(), step, one);
  for (const int64_t step : {30, 50, 70}) Write(root.path(), step, other);
  const std::string begun = TemporaryCheckpointFolderName(80, 2, kOneUid),
                    of_other = TemporaryCheckpointFolderName(80, 2, kOtherUid);
  const std::string nameless = TemporaryCheckpointFolderName(80, 2);
  for (const std::string& name : {begun, of_other, nameless}) root.Write(name + "/rank-0.bin", "x");
  ASSERT_TRUE(PruneCheckpoints(root.path(), 1, 60, one).ok()) << "the other's newer generation is none of its own";
  EXPECT_EQ(NamesIn(root.path()), (std::set<std::string>{NameOf(60), CheckpointFolderName(30, 4), CheckpointFolderName(50, 4),
                                                         CheckpointFolderName(70, 4), of_other, nameless}));
  ASSERT_TRUE(PruneCheckpoints(root.path(), 1, 70, other).ok());
  EXPECT_EQ(NamesIn(root.path()), (std::set<std::string>{NameOf(60), CheckpointFolderName(70, 4), nameless}));
}

TEST(CheckpointOwnerTest, AJobFromBeforeUidsPrunesWhatHasNone) {
  TempFolder root;
  for (const int64_t step : {20, 40}) Write(root.path(), step, NewestEpoch(2));
  CheckpointFence fence = NewestEpoch(3, kOneUid);
  Write(root.path(), 60, fence);
  const std::string nameless = TemporaryCheckpointFolderName(80, 2);
  root.Write(nameless + "/rank-0.bin", "x");
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 60, fence).ok());
  EXPECT_EQ(NamesIn(root.path()).size(), 4u) << "they are another's";
  fence.owner.has_unnamed = true;
  ASSERT_TRUE(PruneCheckpoints(root.path(), 2, 60, fence).ok());
  EXPECT_EQ(NamesIn(root.path()), (std::set<std::string>{CheckpointFolderName(40, 2), NameOf(60)}));
}

TEST(CheckpointOwnerTest, WhoeverMeetsANewerGenerationOfItsOwnStops) {
  TempFolder root;
  const CheckpointFence older = NewestEpoch(3, kOneUid);
  Write(root.path(), 20, NewestEpoch(4, kOtherUid));
  fs::create_directories(root / CheckpointFolderName(20, 5));
  Write(root.path(), 20, older);  // neither another job's nor a name alone counts
  Write(root.path(), 40, NewestEpoch(6, kOneUid));
  const absl::Status status = WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5, older).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const std::string& part : {CheckpointFolderName(40, 6), std::string("generation 6 of job 'job-1' (uid 1111"),
                                  std::string("newer than generation 3"), std::string("another coordinator trains this job")}) {
    EXPECT_NE(Message(status).find(part), std::string::npos) << status;
  }
  EXPECT_FALSE(fs::exists(root / CheckpointFolderName(40, 3)));
  EXPECT_TRUE(absl::IsFailedPrecondition(PruneCheckpoints(root.path(), 1, 20, older)));
}

// By hand: a name promises what its manifest does not hold.
TEST(CheckpointOwnerTest, ARenamedFolderIsNotDeletedAndStopsNobody) {
  TempFolder root;
  const CheckpointFence fence = NewestEpoch(3, kOneUid);
  Write(root.path(), 20, NewestEpoch(2, kOneUid));
  fs::rename(root / CheckpointFolderName(20, 2), root / CheckpointFolderName(20, 900));
  for (const int64_t step : {40, 60}) Write(root.path(), step, fence);
  ASSERT_TRUE(PruneCheckpoints(root.path(), 1, 60, fence).ok());
  EXPECT_EQ(NamesIn(root.path()), (std::set<std::string>{CheckpointFolderName(20, 900), NameOf(60)}));
}

}  // namespace
}  // namespace motley
