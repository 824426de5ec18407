#include "common/data/data_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "common/data/data_files.h"
#include "common/data/dataset.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(DataFormatTest, WhatIsNoTextIsNamedWithItsRemedy) {
  const std::string nul(1, '\0');
  for (const auto& [file, head, what] : std::initializer_list<std::tuple<std::string, std::string, std::string>>{
           {"/d/a_text_document.idx", "MMIDIDX" + nul + nul, "token numbers"},
           {"/d/index", "MMIDIDX" + nul + nul, "token numbers"},
           {"/d/train.BIN", "\x01\x02", "token numbers"},
           {"/d/c4.jsonl", "{\"text\": \"a\"}\n", "JSON Lines"},
           {"/d/part-0", "PAR1....", "a Parquet table"},
           {"/d/x.parquet", "", "a Parquet table"},
           {"/d/cat.png", "\x89PNG\r\n", "an image"},
           {"/d/cat", "\xff\xd8\xff\xe0", "an image"},
           {"/d/book.pdf", "%PDF-1.4", "a PDF document"},
           {"/d/t.txt.gz", "\x1f\x8b\x08", "compressed"},
           {"/d/t.zst", "\x28\xb5\x2f\xfd", "compressed"},
           {"/d/model.pt", "PK\x03\x04", "zip archive"},
           {"/d/model.safetensors", "x", "weights"},
       }) {
    const std::string message(CheckIsText(file, head).message());
    EXPECT_THAT(message, StartsWith("data file " + file + " is "));
    EXPECT_THAT(message, HasSubstr(what));
    EXPECT_THAT(message, HasSubstr(", not plain text; "));
  }
}

TEST(DataFormatTest, TextOfAnyKindIsTaken) {
  for (const char* file : {"/d/a.txt", "/d/a.md", "/d/a.json", "/d/a", "/d/bin", "/d/notes.binary.txt"}) {
    for (const char* head : {"", "BM is how this text begins", "GGUF", "RIFFraff", "{\"text\": 1}\n", "BZh"}) {
      EXPECT_TRUE(CheckIsText(file, head).ok()) << file << " " << head;
    }
  }
}

TEST(DataFormatTest, AFolderNamesItsFile) {
  TempFolder folder;
  folder.Write("a.txt", std::string(1000, 'a'));
  folder.Write("sub/b.jsonl", "{\"text\": \"b\"}\n");
  const absl::Status status = SummarizeData(*OpenData(folder.path()), folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith("data file " + folder / "sub/b.jsonl is JSON Lines, not plain text; "));
}

}  // namespace
}  // namespace motley
