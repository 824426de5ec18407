#include <gtest/gtest.h>

#include <filesystem>

#include "common/checkpoint.h"
#include "tests/common/checkpoint_fixture.h"
#include "tests/common/temp_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Replaces the byte at `offset` by another.
void Alter(const std::string& path, size_t offset) {
  std::string text = TempFolder::Read(path);
  text[offset] = static_cast<char>(text[offset] ^ 1);
  std::ofstream(path, std::ios::binary) << text;
}

TEST(CheckpointReadTest, AnyRangeFromAnySplit) {
  for (const double share : {0.0, 0.3, 1.0}) {
    TempFolder root;
    auto written = WriteTestCheckpoint(root.path(), 40, TinyModel(false), share);
    ASSERT_TRUE(written.ok()) << written.status();
    const std::string folder = root / "step-00000040";
    auto manifest = ReadManifest(folder);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(manifest->job, "job-1");
    EXPECT_EQ(manifest->epoch, 3);
    EXPECT_EQ(manifest->step, 40);
    EXPECT_EQ(manifest->seed, 42);
    EXPECT_EQ(manifest->data_digest, "0123abcd");
    EXPECT_EQ(manifest->model, TinyModel(false));
    ASSERT_TRUE(VerifyCheckpoint(folder, *manifest).ok()) << VerifyCheckpoint(folder, *manifest);
    const std::vector<UnitSpec> units = ParameterLayout(manifest->model);
    for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
      const int64_t n = units[unit].num_elements;
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, n}, {n / 4, n / 2}, {n / 3, n / 3}, {n - 1, n}}) {
        std::vector<float> values(static_cast<size_t>(end - begin));
        ASSERT_TRUE(ReadState(folder, *manifest, unit, StateTensor::kExpAvg, begin, end, values.data()).ok());
        for (int64_t i = begin; i < end; ++i) ASSERT_EQ(values[i - begin], ExpectedValue(unit, StateTensor::kExpAvg, i));
      }
    }
  }
}

TEST(CheckpointReadTest, DamageIsDataLossAndNamesTheFile) {
  TempFolder root;
  auto manifest = WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5);
  ASSERT_TRUE(manifest.ok());
  const std::string folder = root / "step-00000040", file = folder + "/rank-1.bin";
  const std::string whole = TempFolder::Read(file);
  const auto verify = [&] { return VerifyCheckpoint(folder, *manifest); };
  EXPECT_TRUE(verify().ok());
  Alter(file, whole.size() / 2);
  EXPECT_EQ(verify().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(verify()), file + " was altered: its digest does not match");
  root.Write("step-00000040/rank-1.bin", whole.substr(0, whole.size() - 1));
  EXPECT_NE(Message(verify()).find(file + " is cut off"), std::string::npos);
  root.Write("step-00000040/rank-1.bin", whole + "x");
  EXPECT_NE(Message(verify()).find(file + " is too long"), std::string::npos);
  fs::remove(file);
  EXPECT_EQ(Message(verify()), file + " is missing");
  EXPECT_EQ(verify().code(), absl::StatusCode::kDataLoss);
}

TEST(CheckpointReadTest, DamagedManifests) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5).ok());
  const std::string folder = root / "step-00000040", path = folder + "/manifest.json", whole = TempFolder::Read(path);
  root.Write("step-00000040/manifest.json", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(ReadManifest(folder).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(Message(ReadManifest(folder).status()).find(path), std::string::npos);
  std::string altered = whole;
  altered.replace(altered.find("\"step\": 40"), 10, "\"step\": 41");
  root.Write("step-00000040/manifest.json", altered);
  EXPECT_EQ(Message(ReadManifest(folder).status()), path + " was altered: its digest does not match");
  altered = whole;
  altered.replace(altered.find("\"format_version\": 1"), 19, "\"format_version\": 9");
  root.Write("step-00000040/manifest.json", altered);
  EXPECT_EQ(ReadManifest(folder).status().code(), absl::StatusCode::kFailedPrecondition);
  fs::remove(path);
  EXPECT_EQ(ReadManifest(folder).status().code(), absl::StatusCode::kNotFound);
}

TEST(CheckpointReadTest, PiecesMustCoverEverythingOnceAndLieInside) {
  TempFolder root;
  auto manifest = WriteTestCheckpoint(root.path(), 40, TinyModel(true), 0.5);
  ASSERT_TRUE(manifest.ok());
  const std::string folder = root / "step-00000040";
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
  Alter(root / "step-00000080/rank-0.bin", 9);
  Alter(root / "step-00000060/manifest.json", 100);
  root.Write("notes.txt", "not a checkpoint");
  fs::create_directories(root / ".tmp-step-00000090-epoch-3");
  auto found = FindNewestCheckpoint(root.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->folder, root / "step-00000040");
  EXPECT_EQ(found->manifest.step, 40);
  ASSERT_EQ(found->skipped.size(), 2u);
  EXPECT_NE(found->skipped[0].find("step-00000080/rank-0.bin was altered"), std::string::npos);
  EXPECT_NE(found->skipped[1].find("step-00000060/manifest.json"), std::string::npos);
}

TEST(CheckpointReadTest, NoneIsNotFoundAndNoneThatVerifiesIsDataLoss) {
  TempFolder root;
  EXPECT_EQ(FindNewestCheckpoint(root / "absent").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FindNewestCheckpoint(root.path()).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5).ok());
  Alter(root / "step-00000020/rank-0.bin", 9);
  const absl::Status status = FindNewestCheckpoint(root.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "there was one: beginning again must be somebody's decision";
  EXPECT_NE(Message(status).find("rank-0.bin was altered"), std::string::npos);
  EXPECT_NE(Message(status).find("restore one"), std::string::npos);
}

}  // namespace
}  // namespace motley
