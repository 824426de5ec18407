#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "common/base/fault.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/checkpoint/old_format.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// Replaces the byte at `offset` by another.
void Alter(const std::string& path, size_t offset) {
  std::string text = TempFolder::Read(path);
  text[offset] = static_cast<char>(text[offset] ^ 1);
  std::ofstream(path, std::ios::binary) << text;
}

void ExpectValues(CheckpointReader& reader, int unit, int64_t begin, int64_t end) {
  std::vector<float> values(static_cast<size_t>(end - begin));
  const absl::Status status = reader.Read(unit, StateTensor::kExpAvg, begin, end, values.data());
  ASSERT_TRUE(status.ok()) << status;
  for (int64_t i = begin; i < end; ++i) ASSERT_EQ(values[i - begin], ExpectedValue(unit, StateTensor::kExpAvg, i));
}

// More than a block of 4 MiB in each array of its first unit.
ModelShape SeveralBlocks() {
  ModelShape model = TinyModel(true);
  model.vocab_size = 200'000;
  return model;
}

TEST(CheckpointReadTest, AnyRangeFromAnySplit) {
  for (const double share : {0.0, 0.3, 1.0}) {
    TempFolder root;
    auto written = WriteTestCheckpoint(root.path(), 40, TinyModel(false), share);
    ASSERT_TRUE(written.ok()) << written.status();
    const std::string folder = root / NameOf(40);
    auto manifest = ReadManifest(folder);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(manifest->job, "job-1");
    EXPECT_EQ(manifest->epoch, 3);
    EXPECT_EQ(manifest->step, 40);
    EXPECT_EQ(manifest->seed, 42);
    EXPECT_EQ(manifest->data_digest, "0123abcd");
    EXPECT_EQ(manifest->model, TinyModel(false));
    ASSERT_TRUE(VerifyCheckpoint(folder, *manifest).ok()) << VerifyCheckpoint(folder, *manifest);
    auto reader = CheckpointReader::Open(folder);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const std::vector<UnitSpec> units = ParameterLayout(manifest->model);
    for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
      const int64_t n = units[unit].num_elements;
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, n}, {n / 4, n / 2}, {n / 3, n / 3}, {n - 1, n}}) {
        ExpectValues(*reader, unit, begin, end);
      }
    }
  }
}

TEST(CheckpointReadTest, AllFormatsAcrossTheirBlocks) {
  for (const int format : {3, 2, 1}) {
    TempFolder root;
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, SeveralBlocks(), 0.7).ok());
    const std::string folder = root / NameOf(40);
    if (format < 3) ToOldFormat(folder, format);
    auto reader = CheckpointReader::Open(folder);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->manifest().format_version, format);
    EXPECT_TRUE(VerifyCheckpoint(folder, reader->manifest()).ok());
    const int64_t n = ParameterLayout(reader->manifest().model)[0].num_elements;
    ExpectValues(*reader, 0, 0, n);
    ExpectValues(*reader, 0, n / 2, n / 2 + 10);
    ExpectValues(*reader, 1, 0, 5);
  }
}

TEST(CheckpointReadTest, WhoeverReadsVerifies) {
  for (const int format : {3, 2, 1}) {
    TempFolder root;
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, SeveralBlocks(), 0.0).ok());
    const std::string folder = root / NameOf(40);
    if (format < 3) ToOldFormat(folder, format);
    auto found = FindNewestCheckpoint(root.path(), {});
    ASSERT_TRUE(found.ok()) << found.status();
    auto reader = CheckpointReader::Open(folder);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const CheckpointPiece& piece = reader->manifest().files[1].pieces[1];
    Alter(folder + "/rank-1.bin", static_cast<size_t>(piece.file_offset + 4'000'000));  // after both have looked
    std::vector<float> values(static_cast<size_t>(piece.end));
    const absl::Status status = reader->Read(0, piece.tensor, 0, piece.end, values.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_EQ(FaultOf(status), Fault::kDamage);
    EXPECT_EQ(DamagedCheckpointOf(status), folder);
    EXPECT_NE(Message(status).find("rank-1.bin was altered"), std::string::npos) << status;
    if (format > 1) ExpectValues(*reader, 1, 0, 5);  // other blocks are as they were
  }
}

TEST(CheckpointReadTest, AFolderReplacedMeanwhileIsNotDamaged) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5).ok());
  auto reader = CheckpointReader::Open(root / NameOf(40));
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.25).ok());
  float value = 0;
  absl::Status status = reader->Read(0, StateTensor::kParameter, 0, 1, &value);
  EXPECT_EQ(FaultOf(status), Fault::kStorage) << status;
  EXPECT_TRUE(DamagedCheckpointOf(status).empty());
  fs::remove_all(root / NameOf(40));
  status = CheckpointReader::Open(root / NameOf(40)).status();
  EXPECT_EQ(FaultOf(status), Fault::kStorage) << "what others see and we do not is not damaged: " << status;
}

TEST(CheckpointReadTest, DamageIsDataLossAndNamesTheFile) {
  TempFolder root;
  auto manifest = WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5);
  ASSERT_TRUE(manifest.ok());
  const std::string folder = root / NameOf(40), file = folder + "/rank-1.bin";
  const std::string whole = TempFolder::Read(file);
  const auto verify = [&] { return VerifyCheckpoint(folder, *manifest); };
  EXPECT_TRUE(verify().ok());
  Alter(file, whole.size() / 2);
  EXPECT_EQ(verify().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(verify()), file + " was altered: its digest does not match");
  root.Write("step-00000040-gen-3/rank-1.bin", whole.substr(0, whole.size() - 1));
  EXPECT_NE(Message(verify()).find(file + " is cut off"), std::string::npos);
  root.Write("step-00000040-gen-3/rank-1.bin", whole + "x");
  EXPECT_NE(Message(verify()).find(file + " is too long"), std::string::npos);
  fs::remove(file);
  EXPECT_EQ(Message(verify()), file + " is missing");
  EXPECT_EQ(verify().code(), absl::StatusCode::kDataLoss);
  root.Write("elsewhere.bin", whole);
  fs::create_symlink(root / "elsewhere.bin", file);
  EXPECT_EQ(Message(verify()), file + " is a symbolic link; give a regular file") << "although its bytes are right";
  EXPECT_EQ(verify().code(), absl::StatusCode::kDataLoss);
}

TEST(CheckpointReadTest, DamagedManifests) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5).ok());
  const std::string folder = root / NameOf(40), path = folder + "/manifest.json", whole = TempFolder::Read(path);
  root.Write("step-00000040-gen-3/manifest.json", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(ReadManifest(folder).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(Message(ReadManifest(folder).status()).find(path), std::string::npos);
  std::string altered = whole;
  altered.replace(altered.find("\"step\": 40"), 10, "\"step\": 41");
  root.Write("step-00000040-gen-3/manifest.json", altered);
  EXPECT_EQ(Message(ReadManifest(folder).status()), path + " was altered: its digest does not match");
  altered = whole;
  altered.replace(altered.find("\"format_version\": 3"), 19, "\"format_version\": 9");
  root.Write("step-00000040-gen-3/manifest.json", altered);
  EXPECT_EQ(ReadManifest(folder).status().code(), absl::StatusCode::kDataLoss) << "a flipped bit is not a newer format";
  root.Write("step-00000040-gen-3/manifest.json", whole);
  auto manifest = ReadManifest(folder);
  ASSERT_TRUE(manifest.ok());
  manifest->format_version = 9;
  root.Write("step-00000040-gen-3/manifest.json", ManifestToJson(*manifest));
  EXPECT_EQ(ReadManifest(folder).status().code(), absl::StatusCode::kFailedPrecondition);
  manifest->format_version = 3;
  manifest->files[0].blocks.push_back(manifest->files[0].blocks[0]);
  root.Write("step-00000040-gen-3/manifest.json", ManifestToJson(*manifest));
  EXPECT_EQ(ReadManifest(folder).status().code(), absl::StatusCode::kDataLoss) << "one digest too many";
  fs::remove(path);
  EXPECT_EQ(ReadManifest(folder).status().code(), absl::StatusCode::kNotFound);
}

// What somebody left where a manifest should be is passed over, and costs next to nothing.
TEST(CheckpointReadTest, WhatIsNoManifestIsSkippedInLittleMemory) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5).ok());
  const std::string folder = root / NameOf(80), path = folder + "/manifest.json";
  const auto found = [&]() -> std::string {
    const auto newest = FindNewestCheckpoint(root.path(), {});
    EXPECT_TRUE(newest.ok()) << newest.status();
    if (!newest.ok() || newest->skipped.size() != 1) return "";
    EXPECT_EQ(newest->folder, root / NameOf(40));
    fs::remove_all(folder);
    fs::create_directories(folder);
    return newest->skipped[0];
  };
  const auto peak_bytes = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return int64_t{usage.ru_maxrss} * 1024;
  };
  fs::create_directories(folder);
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
  EXPECT_NE(found().find(path + " is a named pipe"), std::string::npos);
  ASSERT_EQ(::mknod(path.c_str(), S_IFSOCK | 0666, 0), 0);
  EXPECT_NE(found().find(path + " is a socket"), std::string::npos);
  fs::create_symlink("nowhere", path);
  EXPECT_NE(found().find(path), std::string::npos);
  const int64_t before = peak_bytes();
  root.Write(NameOf(80) + "/manifest.json", "");
  fs::resize_file(path, 250 << 20);
  EXPECT_NE(found().find(path), std::string::npos);
  std::string brackets = "[";
  brackets.reserve(61 << 20);
  while (brackets.size() < 60 << 20) brackets += "[],";
  brackets += "[]]";
  root.Write(NameOf(80) + "/manifest.json", brackets);
  EXPECT_NE(found().find(path), std::string::npos) << "more than the files beside it could need: there are none";
  // Beside as much data as it may describe it is read, and given up on the way.
  root.Write(NameOf(80) + "/manifest.json", brackets);
  root.Write(NameOf(80) + "/rank-0.bin", "");
  fs::resize_file(folder + "/rank-0.bin", int64_t{1} << 30);
  EXPECT_NE(found().find("holds more than"), std::string::npos);
  EXPECT_LT(peak_bytes() - before, 300 << 20) << "the texts alone";
}

TEST(CheckpointReadTest, PiecesMustCoverEverythingOnceAndLieInside) {
  TempFolder root;
  auto manifest = WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5);
  ASSERT_TRUE(manifest.ok());
  const std::string folder = root / NameOf(40);
  CheckpointManifest wrong = *manifest;
  wrong.files[0].pieces.erase(wrong.files[0].pieces.begin());
  EXPECT_EQ(VerifyCheckpoint(folder, wrong).code(), absl::StatusCode::kDataLoss);
  wrong = *manifest;
  wrong.files[0].pieces.push_back(wrong.files[0].pieces[0]);
  EXPECT_NE(Message(VerifyCheckpoint(folder, wrong)).find("missing or doubled"), std::string::npos);
  wrong = *manifest;
  wrong.files[1].pieces[0].file_offset = wrong.files[1].bytes;
  EXPECT_NE(Message(VerifyCheckpoint(folder, wrong)).find("rank-1.bin"), std::string::npos);
  wrong = *manifest;
  wrong.files[0].pieces[0].unit = 99;
  EXPECT_EQ(VerifyCheckpoint(folder, wrong).code(), absl::StatusCode::kDataLoss);
  wrong = *manifest;
  wrong.files[0].name = "../elsewhere";
  EXPECT_EQ(VerifyCheckpoint(folder, wrong).code(), absl::StatusCode::kDataLoss);
}

TEST(CheckpointReadTest, TheOneBeforeIsUsedAndTheReasonKept) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60, 80}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  fs::resize_file(root / "step-00000080-gen-3/rank-0.bin", 9);
  Alter(root / "step-00000060-gen-3/manifest.json", 100);
  root.Write("notes.txt", "not a checkpoint");
  fs::create_directories(root / ".tmp-step-00000090-gen-3");
  auto found = FindNewestCheckpoint(root.path(), {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->folder, root / NameOf(40));
  EXPECT_EQ(found->manifest.step, 40);
  ASSERT_EQ(found->skipped.size(), 2u);
  EXPECT_NE(found->skipped[0].find("step-00000080-gen-3/rank-0.bin is cut off"), std::string::npos);
  EXPECT_NE(found->skipped[1].find("step-00000060-gen-3/manifest.json"), std::string::npos);
}

// As each epoch goes on from the newest one, it saves higher steps, or one that did not verify again; but for who comes late.
TEST(CheckpointReadTest, TheNewestIsTheNewestEpochs) {
  TempFolder root;
  const std::pair<int64_t, int64_t> saved[] = {
      {50, 4}, {40, 4}, {60, 3}, {40, 3}, {20, 2}};  // steps and epochs, the newest first
  for (size_t i = std::size(saved); i-- > 0;) {
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), saved[i].first, TinyModel(true), 0.5, NewestEpoch(saved[i].second)).ok());
  }
  for (const auto& [step, epoch] : saved) {
    const auto found = FindNewestCheckpoint(root.path(), {});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->folder, root / CheckpointFolderName(step, epoch));
    fs::remove_all(found->folder);
  }
}

TEST(CheckpointReadTest, OlderBuildsNamesAreReadBehindAllOthers) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60, 80}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  for (const int64_t step : {60, 80}) fs::rename(root / NameOf(step), root / OldNameOf(step));
  const std::string aside = ".tmp-step-00000040-epoch-9.aside-0";  // by a writer that was killed then
  fs::rename(root / NameOf(40), root / aside);
  for (const std::string& name : {NameOf(20), OldNameOf(80), OldNameOf(60), aside}) {
    const auto found = FindNewestCheckpoint(root.path(), {});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->folder, root / name);
    fs::remove_all(found->folder);
  }
}

TEST(CheckpointReadTest, NoneIsNotFoundAndNoneThatVerifiesIsDataLoss) {
  TempFolder root;
  EXPECT_EQ(FindNewestCheckpoint(root / "absent", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FindNewestCheckpoint(root.path(), {}).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5).ok());
  fs::remove(root / "step-00000020-gen-3/rank-0.bin");
  const absl::Status status = FindNewestCheckpoint(root.path(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "there was one: beginning again must be somebody's decision";
  EXPECT_NE(Message(status).find("rank-0.bin is missing"), std::string::npos);
  EXPECT_NE(Message(status).find("restore one"), std::string::npos);
}

// Whoever may write in the folder could end the job, or have it wait for a writer that never comes.
TEST(CheckpointReadTest, WhatOthersPutThereIsSkippedWithAReason) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60, 80}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  fs::remove(root / "step-00000080-gen-3/manifest.json");
  ASSERT_EQ(::mkfifo((root / "step-00000080-gen-3/manifest.json").c_str(), 0666), 0);
  fs::remove(root / "step-00000060-gen-3/manifest.json");
  fs::create_directories(root / "step-00000060-gen-3/manifest.json");
  const auto wanted = [](const CheckpointManifest& manifest, const std::string& folder) {
    return manifest.step == 40 ? absl::FailedPreconditionError(folder + " is another job's") : absl::OkStatus();
  };
  auto found = FindNewestCheckpoint(root.path(), {}, wanted);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->manifest.step, 20);
  ASSERT_EQ(found->skipped.size(), 3u);
  EXPECT_NE(found->skipped[0].find("step-00000080-gen-3/manifest.json is a named pipe"), std::string::npos) << found->skipped[0];
  EXPECT_NE(found->skipped[1].find("step-00000060-gen-3/manifest.json is a folder"), std::string::npos) << found->skipped[1];
  EXPECT_NE(found->skipped[2].find("step-00000040-gen-3 is another job's"), std::string::npos) << found->skipped[2];
  for (const std::string& name : {NameOf(20), NameOf(60), NameOf(80)}) fs::remove_all(root / name);
  EXPECT_EQ(FindNewestCheckpoint(root.path(), {}, wanted).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CheckpointReadTest, AFolderWithoutAManifestIsNoCheckpoint) {
  TempFolder root;
  root.Write("step-00000099-gen-3/notes.txt", "mine");
  std::vector<std::string> not_one;
  EXPECT_EQ(FindNewestCheckpoint(root.path(), {}, {}, &not_one).status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(not_one.size(), 1u);
  EXPECT_NE(not_one[0].find("step-00000099-gen-3/manifest.json"), std::string::npos) << not_one[0];
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5).ok());
  EXPECT_EQ(FindNewestCheckpoint(root.path(), {})->manifest.step, 20);
}

TEST(CheckpointReadTest, WhatReadersFoundDamagedIsLeftOut) {
  TempFolder root;
  for (const int64_t step : {20, 40, 60}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  auto found = FindNewestCheckpoint(root.path(), {root / NameOf(60)});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->manifest.step, 40);
  ASSERT_EQ(found->skipped.size(), 1u);
  EXPECT_NE(found->skipped[0].find("step-00000060-gen-3 is damaged"), std::string::npos);
  EXPECT_TRUE(found->unjudged.empty());
  fs::remove(root / "step-00000040-gen-3/rank-0.bin");
  found = FindNewestCheckpoint(root.path(), {root / NameOf(60)});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->unjudged, std::vector<std::string>{root / NameOf(40)}) << "nobody else has looked at it";
  const std::set<std::string> all = {root / NameOf(20), root / NameOf(40), root / NameOf(60)};
  EXPECT_EQ(FindNewestCheckpoint(root.path(), all).status().code(), absl::StatusCode::kDataLoss);
}

TEST(CheckpointReadTest, WhatCannotBeReadNowIsNotSkipped) {
  TempFolder root;
  for (const int64_t step : {20, 40}) ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.5).ok());
  const std::string path = root / "step-00000040-gen-3/manifest.json", whole = TempFolder::Read(path);
  auto manifest = ReadManifest(root / NameOf(40));
  ASSERT_TRUE(manifest.ok());
  manifest->format_version = 9;
  root.Write("step-00000040-gen-3/manifest.json", ManifestToJson(*manifest));
  EXPECT_EQ(FindNewestCheckpoint(root.path(), {}).status().code(), absl::StatusCode::kFailedPrecondition) << "a newer format";
  // Opening it fails, and not because it is missing: this stands for EIO. Only an account that is not root's is refused.
  ASSERT_EQ(chmod(root.path().c_str(), 0777), 0);
  for (const auto& entry : fs::recursive_directory_iterator(root.path())) {
    ASSERT_EQ(chmod(entry.path().c_str(), entry.is_directory() ? 0777 : 0666), 0);
  }
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  absl::Status status, pruned;
  std::thread([&] {
    if (geteuid() == 0) (void)syscall(SYS_setresuid, -1, 65'534, -1);  // of this thread alone
    status = FindNewestCheckpoint(root.path(), {}).status();
    pruned = PruneCheckpoints(root.path(), 1, 20, NewestEpoch());
  }).join();
  EXPECT_FALSE(status.ok() || absl::IsNotFound(status) || absl::IsDataLoss(status)) << status;
  EXPECT_FALSE(pruned.ok());
  EXPECT_TRUE(fs::exists(path)) << "nor deleted";
  fs::remove(path);
  root.Write("step-00000040-gen-3/manifest.json", whole);
  EXPECT_TRUE(FindNewestCheckpoint(root.path(), {}).ok());
}

}  // namespace
}  // namespace motley
