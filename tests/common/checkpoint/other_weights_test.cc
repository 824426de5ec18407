#include "common/checkpoint/other_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

using testing::HasSubstr;

TEST(OtherWeightsTest, WhatIsTakenForACheckpointIsNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {"model.safetensors", "holds HuggingFace weights"},
      {"model-00001-of-00004.safetensors", "holds HuggingFace weights"},
      {"model.safetensors.index.json", "holds HuggingFace weights"},
      {"pytorch_model.bin", "holds weights of PyTorch (.bin), which cannot be a start; give a HuggingFace folder of safetensors"},
      {"config.json", "config.json and no checkpoint"},
      {"snapshots/abc/model.safetensors", "is a download of HuggingFace's hub"},
      {"llama-q4.gguf", "holds weights of llama.cpp, which cannot be a start; give a HuggingFace folder of safetensors, a job"},
      {"consolidated.00.pth", "holds weights of another program, which cannot be a start"},
  };
  for (const auto& [file, what] : rows) {
    TempFolder folder;
    folder.Write(file, "x");
    const absl::Status status = FindCheckpointAt(folder.path(), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), testing::StartsWith(folder.path() + " ")) << file;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what)) << file;
  }
  TempFolder folder;
  EXPECT_THAT(OtherWeightsIn(folder.Write("a.safetensors", "x")), HasSubstr("is a file of HuggingFace weights; give the folder"));
}

TEST(OtherWeightsTest, AllElseIsAsItWas) {
  TempFolder folder;
  folder.Write("notes.txt", "x");
  EXPECT_EQ(OtherWeightsIn(folder.path()), "");
  EXPECT_EQ(OtherWeightsIn(folder / "absent"), "");
  EXPECT_THAT(std::string(FindCheckpointAt(folder.path(), {}).status().message()), HasSubstr("no checkpoint in "));
  // A checkpoint wins, whatever lies beside it.
  folder.Write("model.safetensors", "x");
  ASSERT_TRUE(WriteTestCheckpoint(folder.path(), 3, TinyModel(true), 0.5).ok());
  EXPECT_TRUE(FindCheckpointAt(folder.path(), {}).ok());
}

}  // namespace
}  // namespace motley
