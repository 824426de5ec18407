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
  const std::string temporary = root / ".tmp-step-00000001-gen-1";
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
  const std::string temporary = root / ".tmp-step-00000001-gen-1";
  fs::create_directories(temporary);
  CheckpointManifest manifest{.epoch = 1, .step = 1, .model = TinyModel(true)};
  const auto publish = [&] {
    const FileSizeLimit limit(0);
    return PublishCheckpoint(root.path(), manifest, NewestEpoch(1)).status();
  };
  EXPECT_EQ(publish().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(fs::exists(root / CheckpointFolderName(1, 1)));
}

// Links prepared under the names of a checkpoint's files led the writing into two files that were not ours.
TEST(CheckpointWriteTest, PreparedLinksAreNotFollowed) {
  TempFolder root;
  const std::string temporary = root / ".tmp-step-00000001-gen-1";
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
  CheckpointManifest manifest{.epoch = 1, .step = 1, .model = TinyModel(true)};
  EXPECT_FALSE(PublishCheckpoint(root.path(), manifest, NewestEpoch(1)).ok());
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
  const std::string temporary = root / "job/.tmp-step-00000001-gen-1";
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
  const auto written = WriteCheckpointFile(root / "mount/job/.tmp-step-00000001-gen-1", "rank-0.bin", DType::kFloat64,
                                           {{0, StateTensor::kParameter, 0, 10, unmount}});
  EXPECT_EQ(FaultOf(written.status()), Fault::kStorage) << written.status();
  EXPECT_NE(Message(written.status()).find("mounted here"), std::string::npos) << written.status();
  EXPECT_TRUE(fs::is_empty(root / "disk"));
}

TEST(CheckpointWriteTest, NothingIsPublishedOfWhichAFileIsNotSeen) {
  for (const bool cut : {false, true}) {
    TempFolder root;
    auto manifest = WriteTestCheckpoint(root.path(), 5, TinyModel(true), 0.5);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    manifest->step = 6;
    const std::string temporary = root / ".tmp-step-00000006-gen-3", published = root / NameOf(6);
    fs::copy(root / NameOf(5), temporary);
    fs::remove(temporary + "/manifest.json");
    cut ? fs::resize_file(temporary + "/rank-1.bin", 9) : void(fs::remove(temporary + "/rank-1.bin"));
    EXPECT_EQ(FilesNotSeen(temporary, manifest->files, absl::ZeroDuration()), std::vector<size_t>{1});
    const absl::Status status = PublishCheckpoint(root.path(), *manifest, NewestEpoch()).status();
    EXPECT_EQ(FaultOf(status), Fault::kStorage) << status;
    EXPECT_NE(Message(status).find("rank-1.bin is not seen here"), std::string::npos) << status;
    EXPECT_FALSE(fs::exists(published) || fs::exists(temporary + "/manifest.json"));
  }
}

TEST(CheckpointWriteTest, WhoLooksSeesATokenOnceItIsWhole) {
  TempFolder root;
  const std::string folder = root / ".tmp-step-00000001-gen-1";
  EXPECT_EQ(ReadToken(folder, absl::ZeroDuration()), "");
  fs::create_directories(folder);
  root.Write(".tmp-step-00000001-gen-1/token", "3-5-");
  EXPECT_EQ(ReadToken(folder, absl::ZeroDuration()), "") << "it is being written";
  std::thread late([&] { EXPECT_TRUE(WriteToken(folder, "3-5-77").ok()); });
  EXPECT_EQ(ReadToken(folder, absl::Seconds(60)), "3-5-77");
  late.join();
  EXPECT_TRUE(RemoveToken(folder).ok() && RemoveToken(folder).ok());
  EXPECT_TRUE(fs::is_empty(folder));
}

// Its name could not be synced, so that nobody was told of it, and the save is tried again.
TEST(CheckpointWriteTest, SavingAStepAgainReplacesIt) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 5, TinyModel(true), 0.5).ok());
  root.Write(NameOf(5) + "/rank-0.bin", "damaged");
  auto second = WriteTestCheckpoint(root.path(), 5, TinyModel(true), 0.25);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(VerifyCheckpoint(root / NameOf(5), *second).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), 1);
}

TEST(CheckpointWriteTest, EntriesTravelAsJson) {
  const CheckpointFile file{
      .name = "rank-3.bin", .bytes = 24, .blocks = {Sha256Hex("abc")}, .pieces = {{2, StateTensor::kExpAvgSq, 5, 8, 12}}};
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

TEST(CheckpointWriteTest, EpochsDoNotShareTheFolderOfAStep) {
  TempFolder root;
  for (const int64_t epoch : {3, 4, 5}) {
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), 5, TinyModel(true), 0.5, NewestEpoch(epoch)).ok());
  }
  for (const int64_t epoch : {3, 4, 5}) EXPECT_EQ(ReadManifest(root / CheckpointFolderName(5, epoch))->epoch, epoch);
  EXPECT_EQ(FindNewestCheckpoint(root.path(), {})->manifest.epoch, 5);
}

TEST(CheckpointWriteTest, FolderNames) {
  EXPECT_EQ(CheckpointFolderName(40, 3), "step-00000040-gen-3");
  EXPECT_EQ(CheckpointFolderName(123456789, 12), "step-123456789-gen-12");
  EXPECT_EQ(TemporaryCheckpointFolderName(40, 3), ".tmp-step-00000040-gen-3");
  const std::string of_job = "-job-" + kOneUid.value();
  EXPECT_EQ(CheckpointFolderName(40, 3, kOneUid), "step-00000040-gen-3" + of_job);
  EXPECT_EQ(TemporaryCheckpointFolderName(40, 3, kOneUid), ".tmp-step-00000040-gen-3" + of_job);
  TempFolder root;
  for (const char* name : {"step-40",
                           "step-0000004x",
                           "step-",
                           "steps",
                           "step-00000040-gen-3.old",
                           "step-00000040-gen-",
                           "step-00000040-gen-03",
                           "step-40-gen-3",
                           "step-00000040-gen-99999999999999999999",
                           "step-00000040-gen-1000000000000",
                           "step-00000040-epoch-3",
                           "step-00000040-gen-3-job-1",
                           "step-00000040-job-11111111111111111111111111111111",
                           "step-00000040-gen-3-job-11111111111111111111111111111111x",
                           "step-00000040-gen-3-job-1111111111111111111111111111111G",
                           ".tmp-step-00000040-gen-3-job-1",
                           "notes",
                           ".tmp-step-00000040",
                           ".tmp-step-00000040-gen-",
                           ".tmp-step--gen-3"}) {
    fs::create_directories(root / name);
  }
  EXPECT_TRUE(ListCheckpointFolders(root.path())->empty());
  const char* const ours[] = {"step-00000040-gen-10",
                              "step-00000060-gen-9",
                              "step-00000040-gen-9-job-11111111111111111111111111111111",
                              "step-00000040-gen-9",
                              ".tmp-step-00000050-gen-3",
                              ".tmp-step-00000040-gen-3.trash",
                              ".tmp-step-00000040-gen-3-job-11111111111111111111111111111111.trash",
                              ".tmp-step-00000030-epoch-2",
                              "step-123456789",
                              "step-00000040",
                              ".tmp-step-00000040-epoch-12.aside-0"};
  for (const char* name : ours) fs::create_directories(root / name);
  const auto folders = ListCheckpointFolders(root.path());
  ASSERT_TRUE(folders.ok()) << folders.status();
  std::vector<std::string> names;
  for (const CheckpointFolder& folder : *folders) {
    names.push_back(folder.name);
    EXPECT_EQ(folder.path, root / folder.name);
    EXPECT_EQ(folder.published, folder.name[0] == 's' || folder.name.ends_with(".aside-0")) << folder.name;
  }
  EXPECT_THAT(names, testing::ElementsAreArray(ours)) << "the newest first";
  EXPECT_TRUE((*folders)[1].epoch == 9 && (*folders)[1].step == 60);
  EXPECT_TRUE((*folders)[10].epoch == 0 && (*folders)[10].step == 40);
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
