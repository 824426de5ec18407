#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "common/base/fault.h"
#include "common/base/sha256.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_look.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// While it lives, no file grows beyond so many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &old_), 0);
    struct rlimit small = old_;
    small.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  struct rlimit old_ = {};
  const sighandler_t old_handler_;
};

TEST(CheckpointWriteTest, AFileSizeLimitIsNamedAsOneAndLeavesNoFile) {
  TempFolder root;
  const std::string temporary = root / ".tmp-step-00000001-epoch-1";
  const std::vector<double> values(10);
  const auto write = [&] {
    const FileSizeLimit limit(0);
    return WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat64,
                               {{0, StateTensor::kParameter, 0, 10, [&values] { return values.data(); }}});
  };
  const auto file = write();
  EXPECT_EQ(file.status().code(), absl::StatusCode::kOutOfRange) << "this node's own: the disk, which is everybody's, has room";
  EXPECT_EQ(FaultOf(file.status()), Fault::kStorage);
  EXPECT_NE(Message(file.status())
                .find("checkpoint folder " + temporary +
                      ": 80 bytes to write: the worker's file size limit (ulimit -f, LimitFSIZE) is 0 bytes; raise it"),
            std::string::npos)
      << file.status();
  EXPECT_TRUE(fs::is_empty(temporary)) << "the folder stays for the other ranks; rank 0 removes it when all have failed";
}

// So that the host needs room for one piece of a card's.
TEST(CheckpointWriteTest, APieceIsAskedForWhenItsTurnHasCome) {
  TempFolder root;
  constexpr int kPieces = 3;
  double value = 0;
  std::vector<PieceData> pieces;
  for (int i = 0; i < kPieces; ++i) {
    pieces.push_back({i, StateTensor::kParameter, 0, 1, [&value] {
                        ++value;
                        return &value;
                      }});
  }
  ASSERT_TRUE(WriteCheckpointFile(root / "a", "rank-0.bin", DType::kFloat64, pieces).ok());
  std::ifstream file(root / "a/rank-0.bin", std::ios::binary);
  double read[kPieces] = {};
  file.read(reinterpret_cast<char*>(read), sizeof(read));
  EXPECT_THAT(read, testing::ElementsAre(1, 2, 3));
}

TEST(CheckpointWriteTest, FileSizeLimitInTheMiddleOfAFile) {
  TempFolder root;
  const auto write = [&] {
    const FileSizeLimit limit(4096);
    return WriteTestCheckpoint(root.path(), 7, TinyModel(true), 0.5);
  };
  const auto manifest = write();
  EXPECT_EQ(manifest.status().code(), absl::StatusCode::kOutOfRange) << manifest.status();
  // The folder stays: other ranks may be writing into it, and rank 0 removes it when all have failed.
  for (const auto& entry : fs::recursive_directory_iterator(root.path())) EXPECT_TRUE(entry.is_directory()) << entry.path();
}

TEST(CheckpointWriteTest, AManifestThatDoesNotFitPublishesNothing) {
  TempFolder root;
  const std::string temporary = root / ".tmp-step-00000001-epoch-1";
  fs::create_directories(temporary);
  CheckpointManifest manifest;
  manifest.model = TinyModel(true);
  const auto publish = [&] {
    const FileSizeLimit limit(0);
    return PublishCheckpoint(temporary, root / "step-00000001", manifest, NewestEpoch());
  };
  EXPECT_EQ(publish().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(fs::exists(root / "step-00000001"));
}

// Links prepared under the names of a checkpoint's files led the writing into two files that were not ours.
TEST(CheckpointWriteTest, PreparedLinksAreNotFollowed) {
  TempFolder root;
  const std::string temporary = root / ".tmp-step-00000001-epoch-1";
  const std::string foreign = root.Write("foreign/file", "theirs");
  fs::create_directories(temporary);
  fs::create_symlink(foreign, temporary + "/rank-0.bin");
  const std::vector<double> values(10);
  const std::vector<PieceData> pieces = {{0, StateTensor::kParameter, 0, 10, [&values] { return values.data(); }}};
  EXPECT_FALSE(WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat64, pieces).ok());
  fs::remove_all(temporary);
  fs::create_directory_symlink(root / "foreign", temporary);
  const absl::Status folder = WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat64, pieces).status();
  EXPECT_NE(Message(folder).find(temporary + " is a symbolic link"), std::string::npos) << folder;
  fs::remove(temporary);
  ASSERT_TRUE(WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat64, pieces).ok());
  fs::create_symlink(foreign, temporary + "/manifest.json");
  CheckpointManifest manifest;
  manifest.model = TinyModel(true);
  EXPECT_FALSE(PublishCheckpoint(temporary, root / "step-00000001", manifest, NewestEpoch()).ok());
  EXPECT_EQ(TempFolder::Read(foreign), "theirs");
  EXPECT_FALSE(fs::exists(root / "foreign/rank-0.bin"));
}

TEST(CheckpointWriteTest, UnwritableFolderIsNamed) {
  TempFolder root;
  const std::string file = root.Write("file", "x");
  auto result = WriteCheckpointFile(file + "/below", "rank-0.bin", DType::kFloat32, {});
  EXPECT_FALSE(result.ok());
  EXPECT_NE(Message(result.status()).find(file), std::string::npos);
}

// A share that went leaves the folder that it was mounted on: what is made there fills the wrong disk, and nobody finds it.
TEST(CheckpointWriteTest, NothingIsMadeWhereTheJobsFolderIsNot) {
  TempFolder root;
  const std::string temporary = root / "job/.tmp-step-00000001-epoch-1";
  for (const absl::Status& status :
       {WriteCheckpointFile(temporary, "rank-0.bin", DType::kFloat32, {}).status(), WriteToken(temporary, "1")}) {
    EXPECT_EQ(FaultOf(status), Fault::kStorage) << status;
    EXPECT_NE(Message(status).find(root / "job is not there"), std::string::npos) << status;
  }
  EXPECT_TRUE(fs::is_empty(root.path()));
}

TEST(CheckpointWriteTest, AShareThatGoesInASaveIsNoWrongPath) {
  TempFolder root;
  for (const char* folder : {"share/job", "disk"}) fs::create_directories(root / folder);
  fs::create_directory_symlink("share", root / "mount");
  const std::vector<double> values(10);
  const auto unmount = [&] {
    fs::remove(root / "mount");
    fs::create_directory_symlink("disk", root / "mount");
    return values.data();
  };
  const auto written = WriteCheckpointFile(root / "mount/job/.tmp-step-00000001-epoch-1", "rank-0.bin", DType::kFloat64,
                                           {{0, StateTensor::kParameter, 0, 10, unmount}});
  EXPECT_EQ(FaultOf(written.status()), Fault::kStorage) << written.status();
  EXPECT_NE(Message(written.status()).find("mounted here"), std::string::npos) << written.status();
  EXPECT_TRUE(fs::is_empty(root / "disk"));
}

TEST(CheckpointWriteTest, NothingIsPublishedOfWhichAFileIsNotSeen) {
  for (const bool cut : {false, true}) {
    TempFolder root;
    const auto manifest = WriteTestCheckpoint(root.path(), 5, TinyModel(true), 0.5);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    const std::string temporary = root / ".tmp-step-00000006-epoch-3", final = root / "step-00000006";
    fs::copy(root / "step-00000005", temporary);
    fs::remove(temporary + "/manifest.json");
    cut ? fs::resize_file(temporary + "/rank-1.bin", 9) : void(fs::remove(temporary + "/rank-1.bin"));
    EXPECT_EQ(FilesNotSeen(temporary, manifest->files, absl::ZeroDuration()), std::vector<size_t>{1});
    const absl::Status status = PublishCheckpoint(temporary, final, *manifest, NewestEpoch());
    EXPECT_EQ(FaultOf(status), Fault::kStorage) << status;
    EXPECT_NE(Message(status).find("rank-1.bin is not seen here"), std::string::npos) << status;
    EXPECT_FALSE(fs::exists(final) || fs::exists(temporary + "/manifest.json"));
  }
}

TEST(CheckpointWriteTest, WhoLooksSeesATokenOnceItIsWhole) {
  TempFolder root;
  const std::string folder = root / ".tmp-step-00000001-epoch-1";
  EXPECT_EQ(ReadToken(folder, absl::ZeroDuration()), "");
  fs::create_directories(folder);
  root.Write(".tmp-step-00000001-epoch-1/token", "3-5-");
  EXPECT_EQ(ReadToken(folder, absl::ZeroDuration()), "") << "it is being written";
  std::thread late([&] { EXPECT_TRUE(WriteToken(folder, "3-5-77").ok()); });
  EXPECT_EQ(ReadToken(folder, absl::Seconds(60)), "3-5-77");
  late.join();
  EXPECT_TRUE(RemoveToken(folder).ok() && RemoveToken(folder).ok());
  EXPECT_TRUE(fs::is_empty(folder));
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
  const CheckpointFile file{"rank-3.bin", 24, "", {Sha256Hex("abc")}, {{2, StateTensor::kExpAvgSq, 5, 8, 12}}};
  auto back = FileEntryFromJson(FileEntryToJson(file));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(FileEntryToJson(*back), FileEntryToJson(file));
  EXPECT_EQ(back->blocks, file.blocks);
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
  TempFolder root;
  for (const char* name : {"step-00000040", ".tmp-step-00000040-epoch-3", ".tmp-step-00000050-epoch-12.aside-0", "notes",
                           ".tmp-step-00000040-epoch-", ".tmp-step--epoch-3", "step-40"}) {
    fs::create_directories(root / name);
  }
  auto folders = ListCheckpointFolders(root.path());
  ASSERT_TRUE(folders.ok()) << folders.status();
  ASSERT_EQ(folders->size(), 3u);
  EXPECT_EQ((*folders)[0].name, ".tmp-step-00000050-epoch-12.aside-0");
  EXPECT_TRUE((*folders)[0].aside() && (*folders)[0].epoch == 12 && (*folders)[0].step == 50);
  EXPECT_TRUE(!(*folders)[1].published && (*folders)[1].epoch == 3 && (*folders)[1].suffix.empty());
  EXPECT_TRUE((*folders)[2].published && (*folders)[2].path == root / "step-00000040");
}

// All ranks write into one folder at once; one that cannot must not take it from under the others.
TEST(CheckpointWriteTest, RanksThatFailAndRanksThatWriteShareTheirFolder) {
  const TempFolder root;
  const std::string folder = root.path() + "/" + TemporaryCheckpointFolderName(1, 1);
  const std::vector<float> values(16, 1.0f);
  std::atomic<bool> done = false;
  std::vector<std::thread> failing;
  for (int rank = 0; rank < 3; ++rank) {
    failing.emplace_back([&] {
      const std::string name(300, 'x');  // longer than a name may be
      while (!done)
        EXPECT_FALSE(WriteCheckpointFile(folder, name, DType::kFloat32,
                                         {{0, StateTensor::kParameter, 0, 16, [&values] { return values.data(); }}})
                         .ok());
    });
  }
  for (int i = 0; i < 300; ++i) {
    const auto file = WriteCheckpointFile(folder, "rank-0.bin", DType::kFloat32,
                                          {{0, StateTensor::kParameter, 0, 16, [&values] { return values.data(); }}});
    EXPECT_TRUE(file.ok()) << file.status();
    fs::remove(folder + "/rank-0.bin");
  }
  done = true;
  for (std::thread& rank : failing) rank.join();
}

}  // namespace
}  // namespace motley
