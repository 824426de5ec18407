#include "common/data/data_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "common/data/data_files.h"
#include "common/data/dataset.h"
#include "tests/common/base/folders.h"
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

// Numbers have no mark of their own: what begins like a short one of another format may be tokens.
TEST(DataFormatTest, BareTokensAreToldFromOtherFormatsByLongMarksAlone) {
  for (const char* head : {"\x1f\x8b\x08", "\xff\xfe", "BZh", "\xff\xd8\xff\xe0", "some text", ""}) {
    EXPECT_TRUE(CheckIsBareTokens("/d/train.bin", head).ok()) << head;
  }
  const std::string weights(CheckIsBareTokens("/d/pytorch_model.bin", "PK\x03\x04").message());
  EXPECT_THAT(weights, StartsWith("data file /d/pytorch_model.bin is a zip archive or a PyTorch file, not token numbers; "));
  EXPECT_FALSE(CheckIsBareTokens("/d/x.bin", "PAR1").ok());
}

TEST(DataFormatTest, RecordsAndTablesNameTheProgramThatTakesThem) {
  for (const char* file : {"/d/c4.jsonl", "/d/x.parquet"}) {
    EXPECT_THAT(std::string(CheckIsText(file, "x").message()), HasSubstr("make tokens of it (motley data prepare), or "));
  }
}

// The bytes of UTF-16, of letters below 256.
std::string Wide(const std::string& text, bool little) {
  std::string wide;
  for (const char c : text) wide += little ? std::string{c, '\0'} : std::string{'\0', c};
  return wide;
}

TEST(DataFormatTest, RecordsAreToldWhateverTheFileIsCalled) {
  const std::string tar = std::string("a.txt") + std::string(252, '\0') + "ustar" + std::string(250, '\0');
  const std::string prose = "It was the best of times, it was the worst of times.";
  const std::pair<std::string, std::string> rows[] = {
      {"{\"text\": \"one\"}\n{\"text\": \"two, three\"}\n", "JSON Lines"},
      {"\xef\xbb\xbf{\"text\": \"one\"}\r\n\r\n{\"text\": {\"a\": [1]}}", "JSON Lines"},
      {"[\n {\n  \"instruction\": \"go\",\n  \"input\": \"\"\n }\n]\n", "a JSON list of records"},
      {"[{\"text\":\"one\"},{\"text\":\"two\"}]", "a JSON list of records"},
      {"[\"one\", \"two \\\"x\\\"\", \"three\"]", "a JSON list of records"},
      {"{\"data\": [{\"title\": \"x\"}]}", "a JSON list of records"},
      {"{\"text\":{\"0\":\"one\",\"1\":\"two\"}}", "a JSON list of records"},
      {"id,text\n0,\"one, two\"\n1,\"three \"\"four\"\" five\"\n2,\"six\nseven\"\n", "a table"},
      {"id;text;label\r\n0;one two;a\r\n1;three;b\r\n2;four five :);c\r\n3;x;\r\n4;x;y\r\n5;x;y\r\n6;x;y\r\n7;x;y\r\n8;x;y\r\n",
       "a table"},
      {"0\tmarket under quiet\n1\tunder, bread\n2\tseven (of\n3\triver\n", "a table"},
      {"LJ001|Printing, in the only sense|Printing\nLJ002|in being|in being\nLJ003|For|For\nLJ004|x|y\n", "a table"},
      {tar, "an archive"},
      {"!<arch>\ndebian-binary", "an archive"},
      {std::string("SQLite format 3\0\x10", 17), "a SQLite database"},
      {Wide(prose, true), "UTF-16 text without a mark"},
      {Wide(prose, false), "UTF-16 text without a mark"},
      {"\xff\xfe" + Wide(prose, true), "UTF-16 text"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "a pointer of Git LFS"},
  };
  for (const auto& [head, what] : rows) {
    for (const char* file : {"/d/x.txt", "/d/x.json", "/d/x"}) {
      EXPECT_THAT(std::string(CheckIsText(file, head).message()), StartsWith(std::string("data file ") + file + " is " + what))
          << head;
    }
  }
  EXPECT_THAT(std::string(CheckIsText("/d/x.CSV", "a").message()), HasSubstr("is a table"));
}

TEST(DataFormatTest, ProseAndCodeAreNotRecords) {
  const std::string rows[] = {
      "One, two,\nthree, four,\nfive, six,\nseven, eight,\n",
      "Dear John,\nthank you,\nand good bye,\nuntil then,\n",
      "Yes, we can\nNo, we will\nOh, I see\nAh, so it is\n",
      "parent(ann,bob).\nparent(bob,cid).\nparent(cid,dan).\nparent(dan,eve).\n",
      "{\"text\": \"one\"}\n",
      "{\n  \"name\": \"x\",\n  \"scripts\": [{\"a\": 1}]\n}\n",
      "[1]\n[2]\n",
      "[\"A link\"](http://x), \"text\", \"more\"\n",
      "{ int a; }\n{ int b; }\n",
      "[section]\nkey = 1\n",
      "\tint a;\n\tint b;\n\tint c;\n\tint d;\n",
      "{ A,\t\"A\",\t\"one\" },\n{ B,\t\"B\",\t\"two\" },\n{ C,\t\"C\",\t\"three\" },\n{ D,\t\"D\",\t\"four\" },\n",
      "all:\n\tmake a\n\tmake b\n\tmake c\n",
      "a | b\nc | d\ne | f\ng | h\n",
      "| a | b |\n|---|---|\n| c | d |\n| e | f |\n",
      "x = f(1,2)\ny = f(3,4)\nz = f(5,6)\nw = f(7,8)\n",
      "0x1,0x2,0x3,\n0x4,0x5,0x6,\n0x7,0x8,0x9,\n0xa,0xb,0xc,\n",
      "1. One\n2. Two\n3. Three\n4. Four\n",
      "\"Stop,\" he said.\n\"Go,\" she said.\n\"Why,\" I said.\n\"So,\" they said.\n",
  };
  for (const std::string& head : rows) EXPECT_TRUE(CheckIsText("/d/x.txt", head).ok()) << head << CheckIsText("/d/x.txt", head);
}

// The project's own texts, and the licences of the system where they are there.
TEST(DataFormatTest, RealTextsAreTaken) {
  namespace fs = std::filesystem;
  int texts = 0;
  std::error_code error;
  for (const std::string& top :
       {SourceFolder() + "/docs", SourceFolder() + "/common", SourceFolder() + "/deploy", SourceFolder() + "/tests/integration",
        SourceFolder() + "/tests/oracle", std::string("/usr/share/common-licenses")}) {
    for (fs::recursive_directory_iterator entry(top, error); !error && entry != fs::recursive_directory_iterator();
         entry.increment(error)) {
      if (!entry->is_regular_file() || entry->path().filename().string().starts_with(".")) continue;
      const std::string text = TempFolder::Read(entry->path().string());
      if (text.find('\0') != std::string::npos) continue;  // what a run left beside the sources
      const absl::Status taken = CheckIsText("/d/x.txt", text.substr(0, 1 << 20));
      EXPECT_TRUE(taken.ok()) << entry->path() << ": " << taken;
      ++texts;
    }
  }
  EXPECT_GT(texts, 300);
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
