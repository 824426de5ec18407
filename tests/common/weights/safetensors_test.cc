#include "common/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/weights/weights_fixture.h"

namespace motley {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::vector<StoredTensor>> ParseHeader(const std::string& text, int64_t data_bytes) {
  return ParseSafetensorsHeader(text, kSafetensorsLengthBytes + static_cast<int64_t>(text.size()) + data_bytes, "m.safetensors");
}

absl::StatusOr<SafetensorsFile> OpenText(const TempFolder& folder, const std::string& text) {
  const std::string path = folder.Write("model.safetensors", text);
  return OpenSafetensors(*OpenForRead(path), path);
}

TEST(SafetensorsTest, ReadsWhatProgramsWrite) {
  const std::string text = R"({"__metadata__": {"format": "pt"}, "b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [4, 16]},
    "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, "none": {"dtype": "F16", "shape": [0], "data_offsets": [4, 4]},
    "mask": {"dtype": "BOOL", "shape": [1, 5], "data_offsets": [16, 21]}}  )";
  const auto tensors = ParseHeader(text, 21);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 4u);
  const int64_t data = kSafetensorsLengthBytes + static_cast<int64_t>(text.size());
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].num_elements, 1);
  EXPECT_EQ((*tensors)[1].name, "none");
  EXPECT_EQ((*tensors)[2].name, "b");
  EXPECT_EQ((*tensors)[2].begin, data + 4);
  EXPECT_EQ((*tensors)[2].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*tensors)[3].type, "BOOL");
  const TempFolder folder;
  const auto file = OpenText(folder, SafetensorsText({{"x", "F16", {2}, "abcd"}, {"y", "F32", {1}, "efgh"}}));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->bytes, file->tensors[1].end);
}

TEST(SafetensorsTest, WhatIsWrongIsNamed) {
  const std::string good = R"("a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]})";
  const std::pair<std::string, const char*> rows[] = {
      {"", "m.safetensors: header"},
      {"[]", "the header must be a JSON object"},
      {"{" + good + "," + good + "}", "m.safetensors: header"},  // a key twice
      {R"({"a": 5})", "tensor 'a' must be an object with dtype, shape and data_offsets"},
      {R"({"a": {"dtype": 1, "shape": [2], "data_offsets": [0, 8]}})", "must be an object with dtype"},
      {R"({"a": {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]}})", "must have a shape"},
      {R"({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})", "has no size -2"},
      {R"({"a": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}})", "has no size 2.0"},
      {R"({"a": {"dtype": "F32", "shape": [18446744073709551615], "data_offsets": [0, 8]}})", "has no size"},
      {R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 8]}})", "more elements than a file"},
      {R"({"a": {"dtype": "F64", "shape": [4611686018427387904], "data_offsets": [0, 8]}})", "has 8 bytes, and"},
      {R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", "has 8 bytes, and 3 elements of F32"},
      {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})", "must have data_offsets"},
      {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0]}})", "must have data_offsets"},
      {R"({"a": {"dtype": "X", "shape": [2], "data_offsets": [0, 9223372036854775807]}})", "must have data_offsets"},
      {"{" + good + R"(, "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})", "tensor 'b' overlaps another one"},
      {R"({"b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})", "tensor 'b' leaves a hole before it"},
  };
  for (const auto& [text, what] : rows) {
    const absl::Status status = ParseHeader(text, 8).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("m.safetensors")) << text;
  }
}

TEST(SafetensorsTest, AFileThatIsCutOrLongerIsNamed) {
  const TempFolder folder;
  const std::string whole = SafetensorsText({{"x", "F32", {100}, std::string(400, 'x')}});
  ASSERT_TRUE(OpenText(folder, whole).ok());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const absl::Status status = OpenText(folder, whole.substr(0, bytes)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bytes;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/model.safetensors")) << bytes;
  }
  EXPECT_EQ(OpenText(folder, whole + "x").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(OpenText(folder, std::string(100, '\xff')).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(OpenText(folder, "version https://git-lfs.github.com/spec/v1\n").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace motley
