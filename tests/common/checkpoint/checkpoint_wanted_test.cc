// Which checkpoints a finder takes: none that was renamed, and of a job none that another one made.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// A copy under a higher number would be the newest for ever.
TEST(CheckpointWantedTest, ARenamedOneIsNone) {
  TempFolder root;
  for (const int64_t step : {20, 40}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  const std::string generation = CheckpointFolderName(20, 900), step = NameOf(60);
  for (const std::string& name : {generation, step}) fs::copy(root / NameOf(20), root / name, fs::copy_options::recursive);
  auto found = FindNewestCheckpoint(root.path(), {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->folder, root / NameOf(40));
  const std::string said = " was renamed, generation 3 wrote it; call it " + NameOf(20) + " again";
  EXPECT_EQ(found->skipped,
            (std::vector<std::string>{"checkpoint " + root / generation + said, "checkpoint " + root / step + said}));
  // Nor where people name it, however they write it.
  for (const std::string& given : {root / generation, root / generation + "/", root.path() + "/./" + step}) {
    const absl::Status status = FindCheckpointAt(given, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(Message(status).find(said), std::string::npos) << status;
  }
  fs::rename(root / generation, root / "my-copy");
  EXPECT_TRUE(FindCheckpointAt(root / "my-copy", {}).ok()) << "that is no checkpoint's name";
  // Alone, or beside what is not wanted, it is said.
  for (const std::string& name : {NameOf(20), NameOf(40)}) fs::remove_all(root / name);
  EXPECT_NE(Message(FindNewestCheckpoint(root.path(), {}).status()).find(said), std::string::npos);
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 80, TinyModel(true), 0.5).ok());
  const auto wanted = [](const CheckpointManifest& manifest, const std::string& folder) {
    return manifest.step == 80 ? absl::FailedPreconditionError(folder + " is another job's") : absl::OkStatus();
  };
  EXPECT_NE(Message(FindNewestCheckpoint(root.path(), {}, wanted).status()).find(said), std::string::npos);
}

TEST(CheckpointWantedTest, OfAPathThatStandsForAJobOnlyThatJobsAreTaken) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5, NewestEpoch(3, kOneUid)).ok());
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5, NewestEpoch(4, kOtherUid)).ok());
  const CheckpointFilter one = OnlyOf({JobId("job-1"), kOneUid}), none = OnlyOf({JobId("job-2"), kOneUid});
  const auto found = FindCheckpointAt(root.path(), {}, one);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->manifest.step, 20);
  const std::string theirs = root / CheckpointFolderName(40, 4);
  for (const auto& status : {FindCheckpointAt(theirs, {}, one).status(), FindCheckpointAt(root.path(), {}, none).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(Message(status).find("checkpoint " + theirs + " was made by job 'job-1' (uid " + kOtherUid.value() +
                                   "), and not by job 'job-"),
              std::string::npos)
        << status;
  }
}

}  // namespace
}  // namespace motley
