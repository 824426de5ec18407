#include "common/weights/small_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/files.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class SmallFilesTest : public testing::Test {
 protected:
  // A file of so many bytes, all zero, which takes no room.
  void Size(const std::string& name, int64_t bytes) {
    std::filesystem::resize_file(folder_.Write(name, ""), static_cast<uintmax_t>(bytes));
  }
  // What both say.
  std::string Refusal() {
    const absl::Status read = ReadSmallFiles(folder_.path(), OpenAnywhere).status();
    EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument) << read;
    EXPECT_EQ(CheckSmallFiles(folder_.path(), OpenAnywhere), read);
    return std::string(read.message());
  }

  TempFolder folder_;
};

constexpr int64_t kMiB = int64_t{1} << 20;

TEST_F(SmallFilesTest, AreThoseOfAModelAndNoWeights) {
  for (const char* name : {"config.json", "tokenizer.json", "vocab.json", "merges.txt", "chat_template.jinja", "LICENSE",
                           "additional_chat_templates/tool.jinja", "README.md", "model.safetensors", "original/params.json",
                           "modeling_own.py", "additional_chat_templates/notes.md", "LICENSES/MIT.txt"}) {
    folder_.Write(name, name);
  }
  const auto files = ReadSmallFiles(folder_.path(), OpenAnywhere);
  ASSERT_TRUE(files.ok()) << files.status();
  std::vector<std::string> names;
  for (const SmallFile& file : *files) {
    EXPECT_EQ(file.text, file.name);
    names.push_back(file.name);
  }
  EXPECT_THAT(names, ElementsAre("LICENSE", "README.md", "additional_chat_templates/tool.jinja", "chat_template.jinja",
                                 "config.json", "merges.txt", "tokenizer.json", "vocab.json"));
  EXPECT_TRUE(CheckSmallFiles(folder_.path(), OpenAnywhere).ok());
}

TEST_F(SmallFilesTest, OneThatIsTooLargeIsNamed) {
  Size("vocab.bin", 64 * kMiB);
  EXPECT_TRUE(CheckSmallFiles(folder_.path(), OpenAnywhere).ok());
  Size("vocab.bin", 64 * kMiB + 1);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr((folder_ / "vocab.bin") + " has 67108865 bytes"), HasSubstr("may have 67108864")));
}

TEST_F(SmallFilesTest, TheOneWithWhichAllAreTooLargeIsNamed) {
  Size("LICENSE", 1);
  Size("tokenizer.json", 64 * kMiB);
  Size("vocab.json", 64 * kMiB - 1);
  EXPECT_TRUE(CheckSmallFiles(folder_.path(), OpenAnywhere).ok());
  Size("vocab.txt", 1);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr((folder_ / "vocab.txt") + ": with it the small files of the model"),
                               HasSubstr("have 134217729 bytes, and they may have 134217728")));
}

TEST_F(SmallFilesTest, WhatCannotBeOpenedIsSaidWhereItIsRead) {
  folder_.Write("tokenizer.json", "{}");
  const OpenPath none = [](const std::string& path) -> absl::StatusOr<FileDescriptor> { return FileError(EIO, "open", path); };
  EXPECT_TRUE(CheckSmallFiles(folder_.path(), none).ok());
  EXPECT_FALSE(ReadSmallFiles(folder_.path(), none).ok());
}

}  // namespace
}  // namespace motley
