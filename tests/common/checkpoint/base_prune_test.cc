#include "common/checkpoint/base_prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/weights/base_model.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::Contains;
using testing::UnorderedElementsAre;

class BasePruneTest : public testing::Test {
 protected:
  // The base of weights whose licence is `text`, as `uid` keeps it.
  std::string Keep(const std::string& text, const JobUid& uid) {
    const NamedBase base(BaseModel{{}, {{"LICENSE", text}}});
    EXPECT_TRUE(KeepBase(base, root_.path(), 3, uid).ok());
    return base.name;
  }
  // A checkpoint of that step which names it.
  void Publish(int64_t step, const std::string& base, const JobUid& uid) {
    auto manifest = WriteTestCheckpoint(root_.path(), step, TinyModel(true), 0.5, NewestEpoch(3, uid));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    manifest->base = base;
    root_.Write(CheckpointFolderName(step, 3) + "/manifest.json", ManifestToJson(*manifest));
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_.path())) names.insert(entry.path().filename().string());
    return names;
  }
  absl::Status Prune(bool published = true) { return PruneBases(root_.path(), published, NewestEpoch(3, kOneUid)); }

  TempFolder root_;
};

TEST_F(BasePruneTest, WhatNoCheckpointNamesGoes) {
  const std::string used = Keep("used", kOneUid), unused = Keep("unused", kOneUid);
  Publish(20, used, kOneUid);
  ASSERT_TRUE(Prune(/*published=*/false).ok());
  EXPECT_THAT(Names(), Contains(unused));
  ASSERT_TRUE(Prune().ok());
  EXPECT_EQ(Names(), (std::set<std::string>{used, CheckpointFolderName(20, 3)}));
  EXPECT_TRUE(ReadBase(root_.path(), used).ok());
}

TEST_F(BasePruneTest, ItGoesWithTheLastCheckpointThatNamesIt) {
  const std::string first = Keep("first", kOneUid), second = Keep("second", kOneUid);
  Publish(20, first, kOneUid);
  Publish(40, second, kOneUid);
  ASSERT_TRUE(PruneCheckpoints(root_.path(), 1, 40, NewestEpoch(3, kOneUid)).ok());
  EXPECT_EQ(Names(), (std::set<std::string>{second, CheckpointFolderName(40, 3)}));
}

TEST_F(BasePruneTest, WhatAnotherJobKeepsOrNamesStays) {
  const std::string theirs = Keep("theirs", kOtherUid), shared = Keep("shared", kOneUid), unmarked = Keep("unmarked", JobUid());
  const std::string named = Keep("named", kOneUid);
  Keep("shared", kOtherUid);
  Publish(20, named, kOtherUid);
  ASSERT_TRUE(Prune().ok());
  EXPECT_EQ(Names(), (std::set<std::string>{theirs, shared, unmarked, named, CheckpointFolderName(20, 3)}));
}

TEST_F(BasePruneTest, WhileACheckpointCannotBeReadNothingGoes) {
  const std::string unused = Keep("unused", kOneUid);
  root_.Write(CheckpointFolderName(20, 3) + "/manifest.json", "{");
  ASSERT_TRUE(Prune().ok());
  EXPECT_THAT(Names(), Contains(unused));
}

TEST_F(BasePruneTest, WhatAKilledWriterLeftGoesWhereItWasTheJobsOwn) {
  const std::string base = "base-0123456789abcdef";
  const std::string own = UnfinishedBaseName(base, 2, kOneUid), newer = UnfinishedBaseName(base, 3, kOneUid);
  const std::string theirs = UnfinishedBaseName(base, 2, kOtherUid), old = UnfinishedBaseName(base, 2, JobUid());
  for (const std::string& name : {own, newer, theirs, old, std::string(".tmp-base-x-gen-2")}) root_.Write(name + "/files/a", "a");
  ASSERT_TRUE(Prune(/*published=*/false).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre(newer, theirs, old, ".tmp-base-x-gen-2"));
  CheckpointFence fence = NewestEpoch(4, kOneUid);
  fence.confirm = [](const std::string&) { return absl::FailedPreconditionError("stale"); };
  EXPECT_TRUE(absl::IsFailedPrecondition(PruneBases(root_.path(), false, fence)));
  EXPECT_THAT(Names(), Contains(newer));
  fence.confirm = NewestEpoch().confirm;
  fence.owner.has_unnamed = true;
  ASSERT_TRUE(PruneBases(root_.path(), false, fence).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre(theirs, ".tmp-base-x-gen-2"));
}

TEST_F(BasePruneTest, ALinkIsNobodys) {
  const TempFolder elsewhere;
  const std::string name = Keep("text", kOneUid);
  fs::rename(root_ / name, elsewhere / "moved");
  fs::create_symlink(elsewhere / "moved", root_ / name);
  ASSERT_TRUE(Prune().ok());
  EXPECT_THAT(Names(), Contains(name));
  EXPECT_TRUE(fs::exists(elsewhere / "moved/base.json"));
}

}  // namespace
}  // namespace motley
