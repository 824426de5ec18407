#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "common/checkpoint.h"
#include "common/checkpoint_manifest.h"
#include "tests/common/checkpoint_fixture.h"
#include "tests/common/temp_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(CheckpointWriteTest, FullDiskIsResourceExhaustedAndLeavesNoFile) {
  TempFolder root;
  const std::string temporary = root / ".tmp-step-00000001-epoch-1";
  fs::create_directories(temporary);
  fs::create_symlink("/dev/full", temporary + "/rank-0.bin");  // every write: ENOSPC
  const std::vector<double> values(10);
  auto file = WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat64, {{0, StateTensor::kParameter, 0, 10, values.data()}});
  EXPECT_EQ(file.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(Message(file.status()).find("checkpoint folder " + temporary + " is full: 80 bytes to write"), std::string::npos)
      << file.status();
  EXPECT_FALSE(fs::exists(temporary)) << "the folder goes with its last file";
}

TEST(CheckpointWriteTest, FileSizeLimitInTheMiddleOfAFile) {
  TempFolder root;
  struct rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto manifest = WriteTestCheckpoint(root.path(), 7, TinyModel(true), 0.5);
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(manifest.status().code(), absl::StatusCode::kResourceExhausted) << manifest.status();
  EXPECT_TRUE(fs::is_empty(root.path()));
}

TEST(CheckpointWriteTest, AManifestThatDoesNotFitPublishesNothing) {
  TempFolder root;
  const std::string temporary = root / ".tmp-step-00000001-epoch-1";
  fs::create_directories(temporary);
  fs::create_symlink("/dev/full", temporary + "/manifest.json");
  CheckpointManifest manifest;
  manifest.model = TinyModel(true);
  EXPECT_EQ(PublishCheckpoint(temporary, root / "step-00000001", manifest).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(fs::exists(root / "step-00000001"));
}

TEST(CheckpointWriteTest, UnwritableFolderIsNamed) {
  TempFolder root;
  const std::string file = root.Write("file", "x");
  auto result = WriteCheckpointFile(file + "/below", "rank-0.bin", DType::kFloat32, {});
  EXPECT_FALSE(result.ok());
  EXPECT_NE(Message(result.status()).find(file), std::string::npos);
}

TEST(CheckpointWriteTest, SavingAStepAgainReplacesIt) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 5, TinyModel(true), 0.5).ok());
  root.Write("step-00000005/rank-0.bin", "damaged");
  auto second = WriteTestCheckpoint(root.path(), 5, TinyModel(true), 0.25);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(VerifyCheckpoint(root / "step-00000005", *second).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), 1);
}

TEST(CheckpointWriteTest, EntriesTravelAsJson) {
  const CheckpointFile file{"rank-3.bin", 24, "abc", {{2, StateTensor::kExpAvgSq, 5, 8, 12}}};
  auto back = FileEntryFromJson(FileEntryToJson(file));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(FileEntryToJson(*back), FileEntryToJson(file));
  EXPECT_EQ(back->pieces[0].tensor, StateTensor::kExpAvgSq);
  EXPECT_EQ(back->pieces[0].file_offset, 12);
  for (const char* bad :
       {"", "{", "{}", "[]", R"({"name":"a","bytes":1,"sha256":"","pieces":[{"unit":0,"tensor":"velocity"}]})"}) {
    EXPECT_EQ(FileEntryFromJson(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(CheckpointWriteTest, FolderNames) {
  EXPECT_EQ(CheckpointFolderName(40), "step-00000040");
  EXPECT_EQ(TemporaryCheckpointFolderName(40, 3), ".tmp-step-00000040-epoch-3");
  EXPECT_EQ(StepOfFolder("step-00000040"), 40);
  EXPECT_EQ(StepOfFolder("step-123456789"), 123456789);
  for (const char* other : {"step-40", "step-0000004x", "step-", ".tmp-step-00000040-epoch-3", "steps", "step-00000040.old"}) {
    EXPECT_EQ(StepOfFolder(other), -1) << other;
  }
  EXPECT_EQ(EpochOfTemporaryFolder(".tmp-step-00000040-epoch-3"), 3);
  EXPECT_EQ(EpochOfTemporaryFolder(".tmp-step-00000040-epoch-12.replaced"), 12);
  EXPECT_EQ(EpochOfTemporaryFolder(".tmp-step-00000040-epoch-"), -1);
  EXPECT_EQ(EpochOfTemporaryFolder("step-00000040"), -1);
}

}  // namespace
}  // namespace motley
