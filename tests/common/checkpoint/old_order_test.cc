#include "common/checkpoint/old_order.h"

#include <gtest/gtest.h>

#include "common/base/fault.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/checkpoint/old_format.h"

namespace motley {
namespace {

constexpr int kOldFormats[] = {1, 2};

ModelShape UntiedLlamaOfOneKeyHead() {
  ModelShape shape = TinyLlama();
  shape.num_kv_heads = 1;
  return shape;
}
const ModelShape kModels[] = {TinyModel(true), TinyModel(false), TinyLlama(), UntiedLlamaOfOneKeyHead(), TinyQwen2()};

struct Written {
  Written(const ModelShape& model, int format) : units(ParameterLayout(model)) {
    EXPECT_TRUE(WriteTestCheckpoint(root.path(), 40, model, 0.3).ok());
    if (format < kSharedCheckpointFormat) ToOldFormat(folder, format);
  }
  TempFolder root;
  std::string folder = root / NameOf(40);
  std::vector<UnitSpec> units;
};

std::vector<float> Values(CheckpointReader& reader, int unit, StateTensor tensor, int64_t begin, int64_t end) {
  std::vector<float> values(static_cast<size_t>(end - begin));
  const absl::Status status = reader.Read(unit, tensor, begin, end, values.data());
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

TEST(OldOrderTest, AnyRangeIsWhatItWas) {
  for (const ModelShape& model : kModels) {
    for (const int format : kOldFormats) {
      const Written old(model, format);
      auto reader = CheckpointReader::Open(old.folder);
      ASSERT_TRUE(reader.ok()) << reader.status();
      EXPECT_EQ(reader->manifest().format_version, format);
      EXPECT_TRUE(VerifyCheckpoint(old.folder, reader->manifest()).ok());
      for (int unit = 0; unit < static_cast<int>(old.units.size()); ++unit) {
        const int64_t n = old.units[static_cast<size_t>(unit)].num_elements;
        for (int t = 0; t < kNumStateTensors; ++t) {
          const auto tensor = static_cast<StateTensor>(t);
          for (int64_t begin = 0; begin < n; begin += n / 7 + 1) {  // within tensors, and within rows of matrices
            for (const int64_t length : {int64_t{0}, int64_t{1}, int64_t{13}, n / 3, n}) {
              const int64_t end = std::min(n, begin + length);
              const std::vector<float> values = Values(*reader, unit, tensor, begin, end);
              for (int64_t i = begin; i < end; ++i) {
                ASSERT_EQ(values[static_cast<size_t>(i - begin)], ExpectedValue(unit, tensor, i))
                    << "unit " << unit << ", element " << i << " of " << begin << " to " << end << ", format " << format;
              }
            }
          }
        }
      }
    }
  }
}

// By hand: GPT-2 of 8 had the norm's 16 elements, then c_attn [8, 24], which now is [24, 8] and comes first.
TEST(OldOrderTest, RunsOfAMatrixThatIsTurned) {
  const std::vector<OldRun> one = OldRunsOf(TinyModel(true), 1, 5 * 8 + 3, 5 * 8 + 4);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].begin, 16 + 3 * 24 + 5);
  EXPECT_EQ(one[0].elements, 1);
  EXPECT_EQ(one[0].at, 0);
  const std::vector<OldRun> rows = OldRunsOf(TinyModel(true), 1, 5 * 8 + 3, 7 * 8);  // row 5 from column 3 on, and row 6
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows[0].begin, 16 + 6);
  EXPECT_EQ(rows[0].elements, 1);
  EXPECT_EQ(rows[0].at, 5);
  EXPECT_EQ(rows[3].begin, 16 + 3 * 24 + 5);
  EXPECT_EQ(rows[3].elements, 2);
  EXPECT_EQ(rows[3].at, 0);
  EXPECT_EQ(rows[3].stride, 8);
}

TEST(OldOrderTest, WhatIsNotTurnedIsOneRun) {
  const std::vector<UnitSpec> units = ParameterLayout(TinyLlama());
  const std::vector<OldRun> embedding = OldRunsOf(TinyLlama(), 0, 3, 700);
  ASSERT_EQ(embedding.size(), 1u);
  EXPECT_EQ(embedding[0].begin, 3);
  EXPECT_EQ(embedding[0].elements, 697);
  const std::vector<OldRun> head = OldRunsOf(TinyLlama(), 3, 0, units[3].num_elements);  // the norm came first
  ASSERT_EQ(head.size(), 2u);
  EXPECT_EQ(head[0].begin, 8);
  EXPECT_EQ(head[1].begin, 0);
}

TEST(OldOrderTest, DamageIsNoticed) {
  for (const int format : kOldFormats) {
    const Written old(TinyModel(true), format);
    auto reader = CheckpointReader::Open(old.folder);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const std::string path = old.folder + "/rank-1.bin";
    std::string bytes = TempFolder::Read(path);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    old.root.Write("step-00000040-gen-3/rank-1.bin", bytes);
    const int64_t n = old.units[1].num_elements;
    std::vector<float> values(static_cast<size_t>(n));
    const absl::Status status = reader->Read(1, StateTensor::kParameter, 0, n, values.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_EQ(FaultOf(status), Fault::kDamage);
    EXPECT_EQ(DamagedCheckpointOf(status), old.folder);
    EXPECT_EQ(VerifyCheckpoint(old.folder, reader->manifest()).code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(ExportHuggingFace(old.folder, old.root / "out").code(), absl::StatusCode::kDataLoss);
  }
}

TEST(OldOrderTest, ExportIsTheSame) {
  for (const ModelShape& model : kModels) {
    const Written now(model, kSharedCheckpointFormat);
    ASSERT_TRUE(ExportHuggingFace(now.folder, now.root / "out").ok());
    for (const int format : kOldFormats) {
      const Written old(model, format);
      const absl::Status exported = ExportHuggingFace(old.folder, old.root / "out");
      ASSERT_TRUE(exported.ok()) << exported;
      EXPECT_TRUE(TempFolder::Read(old.root / "out/model.safetensors") == TempFolder::Read(now.root / "out/model.safetensors"));
    }
  }
}

}  // namespace
}  // namespace motley
