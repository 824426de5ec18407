// What a data path holds, however it came there, and what is said of one that is damaged.
#include "common/data/data_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "common/base/beneath.h"
#include "common/data/data_size.h"
#include "tests/common/base/another_tick.h"
#include "tests/common/data/token_data.h"

namespace motley {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

absl::StatusOr<DataSummary> SummaryOf(const std::string& path) {
  const absl::StatusOr<FileDescriptor> opened = OpenData(path);
  return opened.ok() ? SummarizeData(*opened, path) : opened.status();
}
std::string ErrorOf(const std::string& path) { return std::string(SummaryOf(path).status().message()); }

std::vector<uint16_t> SomeTokens(size_t count) {
  std::vector<uint16_t> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(static_cast<uint16_t>(i * 7 % 991));
  return tokens;
}
template <typename Number>
std::vector<int64_t> Wide(const std::vector<Number>& numbers, size_t begin, size_t count) {
  return {numbers.begin() + static_cast<ptrdiff_t>(begin), numbers.begin() + static_cast<ptrdiff_t>(begin + count)};
}

// As a stream of any seq_len, the validation part at its end.
void ExpectStream(const std::string& path, const std::vector<uint16_t>& tokens) {
  SCOPED_TRACE(path);
  for (const int64_t seq_len : {5, 16}) {
    const auto data = OpenAs(path, seq_len, 0.25);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(data->summary().kind, DataKind::kStream);
    EXPECT_EQ(data->summary().tokens, static_cast<int64_t>(tokens.size()));
    EXPECT_EQ(data->summary().trained_tokens, static_cast<int64_t>(tokens.size()) - 1);
    EXPECT_EQ(data->summary().greatest_token, *std::max_element(tokens.begin(), tokens.end()));
    EXPECT_FALSE(data->has_rows());
    const auto held = static_cast<int64_t>(static_cast<double>(tokens.size()) * 0.25);
    const auto all = static_cast<int64_t>(tokens.size());
    EXPECT_EQ(data->num_samples(Split::kTrain), (all - held - 1) / seq_len);
    EXPECT_EQ(data->num_samples(Split::kValidation), (held - 1) / seq_len);
    for (const Split split : {Split::kTrain, Split::kValidation}) {
      for (int64_t i = 0; i < data->num_samples(split); ++i) {
        const auto begin = static_cast<size_t>((split == Split::kTrain ? 0 : all - held) + i * seq_len);
        const auto size = static_cast<size_t>(seq_len);
        const auto row = ReadRow(*data, split, i, seq_len);
        ASSERT_TRUE(row.ok()) << row.status();
        EXPECT_EQ(*row, (ReadSample{Wide(tokens, begin, size), Wide(tokens, begin + 1, size), std::vector<uint8_t>(size, 1),
                                    DocumentLengths{static_cast<int32_t>(seq_len)}}));
      }
    }
    EXPECT_EQ(*data->CountTrained(Split::kTrain, std::vector<int64_t>{0, 2}), 2 * seq_len);
  }
}

std::string LlmcBytes(int32_t magic, int32_t version, int64_t count, const std::string& tokens) {
  std::vector<int32_t> header(256);
  header[0] = magic, header[1] = version, header[2] = static_cast<int32_t>(count);
  return Bytes(header) + tokens;
}

TEST(DataSourceTest, TokensOfEveryMakerAreOneStream) {
  TempFolder folder;
  const std::vector<uint16_t> tokens = SomeTokens(200);
  const auto count = static_cast<int64_t>(tokens.size());
  ExpectStream(folder.Write("nanogpt/train.bin", Bytes(tokens)), tokens);
  ExpectStream(folder.Write("llmc/a.bin", LlmcBytes(20240520, 1, count, Bytes(tokens))), tokens);
  const std::vector<uint32_t> wide(tokens.begin(), tokens.end());
  ExpectStream(folder.Write("llmc/b.bin", LlmcBytes(20240801, 7, count, Bytes(wide))), tokens);
  ExpectStream(WriteStream(folder, "ours", tokens), tokens);
  // Megatron's, by type.
  std::vector<uint8_t> small;
  std::vector<uint16_t> small_tokens;
  for (const uint16_t token : tokens) small.push_back(static_cast<uint8_t>(token)), small_tokens.push_back(small.back());
  const std::vector<int32_t> ints(tokens.begin(), tokens.end());
  const std::vector<int64_t> longs(tokens.begin(), tokens.end());
  const std::vector<int32_t> lengths = {150, 0, 50};
  const std::vector<int64_t> documents = {0, 2, 3};
  const auto write = [&](const std::string& name, const std::string& bin, int code, int64_t size) {
    folder.Write(name + ".idx", IndexBytes(code, size, lengths, documents));
    return folder.Write(name + ".bin", bin);
  };
  ExpectStream(write("m/u8", Bytes(small), 1, 1), small_tokens);
  ExpectStream(write("m/u16", Bytes(tokens), 8, 2), tokens);
  ExpectStream(write("m/i32", Bytes(ints), 4, 4), tokens);
  ExpectStream(write("m/i64", Bytes(longs), 5, 8), tokens);
}

TEST(DataSourceTest, ADigestIsOfTheFileOrOfTokensJson) {
  TempFolder folder;
  const std::string bytes = Bytes(SomeTokens(50));
  EXPECT_EQ(SummaryOf(folder.Write("a.bin", bytes))->digest, Sha256Hex(bytes));
  EXPECT_EQ(SummaryOf(folder / "a.bin")->bytes, 100);
  const std::string ours = WriteStream(folder, "ours", SomeTokens(50));
  const auto summary = SummaryOf(ours);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const std::string json = TempFolder::Read(ours + "/tokens.json");
  EXPECT_EQ(summary->digest, Sha256Hex(json));
  EXPECT_EQ(summary->tokenizer, Sha256Hex("tokenizer"));
  EXPECT_EQ(summary->source_bytes, 5000);
  EXPECT_EQ(summary->bytes,
            static_cast<int64_t>(json.size() + fs::file_size(ours + "/tokens.bin") + fs::file_size(ours + "/tokens.idx")));
  // Of another type the same bytes are other tokens.
  const std::string one = folder.Write("x/a.bin", bytes), other = folder.Write("y/a.bin", bytes);
  folder.Write("x/a.idx", IndexBytes(8, 2, {50}, {0, 1}));
  folder.Write("y/a.idx", IndexBytes(4, 4, {25}, {0, 1}));
  const auto sixteen = SummaryOf(one);
  ASSERT_TRUE(sixteen.ok()) << sixteen.status();
  EXPECT_NE(sixteen->digest, SummaryOf(other)->digest);
}

TEST(DataSourceTest, RowsOfAnotherLengthAndTokensBeyondTheModelAreRefused) {
  TempFolder folder;
  const std::string rows = WriteRows(folder, "rows", TwoRows(), 6);
  EXPECT_THAT(
      std::string(OpenAs(rows, 8).status().message()),
      HasSubstr("rows: its rows were made for sequences of 6 tokens, and training.seq_len is 8; set training.seq_len to 6"));
  EXPECT_THAT(std::string(OpenAs(rows, 6, 0, 15).status().message()), HasSubstr("it has token 15, and the model has 15 of them"));
  EXPECT_TRUE(OpenAs(rows, 6, 0, 16).ok());
  EXPECT_THAT(std::string(OpenAs(folder.Write("a.bin", Bytes<uint16_t>({1, 2, 500, 4})), 2, 0, 256).status().message()),
              HasSubstr("a.bin has 500 as token 2; tokens are 0 to 255 for this model"));
  EXPECT_THAT(std::string(OpenAs(rows, 6, 0.2).status().message()),
              HasSubstr("the data has 3 rows; at least 5 are needed for training.seq_len 6 with data.validation_fraction 0.2"));
}

TEST(DataSourceTest, DamagedFilesOfTokensAreNamed) {
  TempFolder folder;
  const std::string tokens = Bytes(SomeTokens(20));
  EXPECT_THAT(ErrorOf(folder.Write("odd.bin", tokens + "x")), HasSubstr("odd.bin has 41 bytes, an odd number"));
  EXPECT_THAT(ErrorOf(folder.Write("zip.bin", "PK\x03\x04" + tokens)),
              HasSubstr("zip.bin is a zip archive or a PyTorch file, not token"));
  EXPECT_THAT(ErrorOf(folder.Write("l.bin", LlmcBytes(20240520, 1, 21, tokens))),
              HasSubstr("whose header says 21 tokens of 2 bytes"));
  EXPECT_THAT(ErrorOf(folder.Write("v.bin", LlmcBytes(20240801, 3, 20, tokens))),
              HasSubstr("of version 3; Motley reads version 7"));
  const auto megatron = [&](const std::string& idx) {
    folder.Write("m.idx", idx);
    return ErrorOf(folder.Write("m.bin", tokens));
  };
  EXPECT_THAT(megatron("short"), HasSubstr("m.idx has 5 bytes, too few"));
  EXPECT_THAT(megatron(std::string(60, 'x')), HasSubstr("m.idx is no index of tokens"));
  const std::string good = IndexBytes(8, 2, {12, 8}, {0, 1, 2});
  EXPECT_EQ(megatron(good), "");
  EXPECT_THAT(megatron(good.substr(0, good.size() - 1)), HasSubstr("it was cut off or is damaged"));
  EXPECT_THAT(megatron(IndexBytes(7, 4, {10}, {0, 1})), HasSubstr("says type 7 of its tokens"));
  EXPECT_THAT(megatron(IndexBytes(8, 2, {12, 9}, {0, 1, 2})),
              HasSubstr("number 1 ends beyond the 20 tokens of the .bin beside it"));
  EXPECT_THAT(megatron(IndexBytes(8, 2, {12, 7}, {0, 1, 2})), HasSubstr("has sequences of 19 tokens, the .bin beside it 20"));
  EXPECT_THAT(megatron(IndexBytes(8, 4, {12, 8}, {0, 1, 2})), HasSubstr("says of sequence 1 another place"));
  EXPECT_THAT(megatron(IndexBytes(8, 2, {12, 8}, {0, 3, 2})), HasSubstr("document 1 begins at sequence 3 of 2"));
  EXPECT_THAT(megatron(IndexBytes(8, 2, {12, 8}, {0, 1})), HasSubstr("documents of 1 sequences, but 2 sequences"));
  EXPECT_THAT(megatron(IndexBytes(5, 8, {5}, {0, 1})), HasSubstr(" as token ")) << "numbers that are none";
  EXPECT_THAT(ErrorOf(folder / "m.idx"), HasSubstr("is an index of tokens; give the .bin beside it"));
}

TEST(DataSourceTest, ADamagedFolderIsNamed) {
  TempFolder folder;
  TokenRowsText masked = TwoRows();
  masked.mask.assign(15, true);
  const std::string path = WriteRows(folder, "rows", masked, 6);
  const auto with = [&](const std::string& file, const std::function<void(std::string&)>& change) {
    const std::string kept = TempFolder::Read(path + "/" + file);
    std::string bytes = kept;
    change(bytes);
    folder.Write("rows/" + file, bytes);
    const std::string error = ErrorOf(path);
    folder.Write("rows/" + file, kept);
    return error;
  };
  EXPECT_EQ(ErrorOf(path), "");
  EXPECT_THAT(with("tokens.bin", [](std::string& bytes) { bytes.pop_back(); }),
              HasSubstr("rows/tokens.bin has 29 bytes, where tokens.json beside it says 30: it was cut off"));
  EXPECT_THAT(with("tokens.bin", [](std::string& bytes) { bytes += "more"; }), HasSubstr("tokens.bin has 34 bytes"));
  EXPECT_THAT(with("tokens.idx", [](std::string& bytes) { bytes.pop_back(); }), HasSubstr("tokens.idx has "));
  EXPECT_THAT(with("tokens.idx", [](std::string& bytes) { bytes[0] = 'x'; }), HasSubstr("is no index of tokens"));
  EXPECT_THAT(with("tokens.idx", [](std::string& bytes) { bytes[17] = 1; }), HasSubstr("is not of the folder whose tokens.json"));
  EXPECT_THAT(with("mask.bin", [](std::string& bytes) { bytes += "m"; }), HasSubstr("mask.bin has 3 bytes, where tokens.json"));
  EXPECT_THAT(with("tokens.json", [](std::string& bytes) { bytes.resize(bytes.size() / 2); }),
              HasSubstr("data file " + path + "/tokens.json"));
  EXPECT_THAT(ErrorOf(path + "/tokens.bin"), HasSubstr("is a part of a folder of tokens; give the folder: " + path));
  fs::remove(path + "/mask.bin");
  EXPECT_THAT(ErrorOf(path), HasSubstr("mask.bin"));
  fs::remove(path + "/tokens.json");
  EXPECT_THAT(ErrorOf(path),
              HasSubstr("holds tokens.bin and no tokens.json, which is written last: motley data prepare did not end"));
}

// Whatever the index says, nothing beyond the files is read.
TEST(DataSourceTest, AnIndexThatLiesIsNamedWhereItIsRead) {
  TempFolder folder;
  const std::string path = WriteRows(folder, "rows", TwoRows(), 6);
  const std::string good = TempFolder::Read(path + "/tokens.idx");
  std::mt19937 random(2);
  int wrong = 0;
  for (int round = 0; round < 600; ++round) {
    std::string idx = good;
    for (int i = 0; i < 3; ++i) idx[34 + random() % (idx.size() - 34)] = static_cast<char>(random());
    folder.Write("rows/tokens.idx", idx);
    const auto data = OpenAs(path, 6);
    ASSERT_TRUE(data.ok()) << data.status();
    for (int64_t row = 0; row < 3; ++row) {
      const auto read = ReadRow(*data, Split::kTrain, row, 6);
      const auto trained = data->CountTrained(Split::kTrain, std::vector<int64_t>{row});
      ASSERT_EQ(read.ok(), trained.ok());
      if (!read.ok()) {
        ++wrong;
        ASSERT_THAT(std::string(read.status().message()), HasSubstr("is damaged where it tells of document"));
        continue;
      }
      int64_t filled = 0;
      for (const int32_t length : read->lengths) {
        ASSERT_GT(length, 0);
        filled += length;
      }
      ASSERT_EQ(filled, 6);
    }
  }
  EXPECT_GT(wrong, 200);
}

TEST(DataSourceTest, AnAlteredByteIsFoundByItsPart) {
  TempFolder folder;
  const std::string path = WriteStream(folder, "ours", SomeTokens(4000));
  const timespec times[2] = {{7, 0}, {7, 0}};
  const auto prove = [&] {
    EXPECT_EQ(::utimensat(AT_FDCWD, (path + "/tokens.bin").c_str(), times, 0), 0);
    const auto data = OpenAs(path, 8);
    EXPECT_TRUE(data.ok()) << data.status();
    EXPECT_FALSE(data->is_proven());
    Proof proof;
    return data->Prove(proof);
  };
  EXPECT_EQ(prove(), absl::OkStatus());
  std::fstream file(path + "/tokens.bin", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(5000).put('\x01');
  file.close();
  EXPECT_THAT(
      std::string(prove().message()),
      HasSubstr("ours/tokens.bin is not what was prepared: its bytes 0 to 8000 have another digest than tokens.json says"));
  Proof stopped;
  stopped.stop = true;
  EXPECT_TRUE(absl::IsCancelled(OpenAs(path, 8)->Prove(stopped)));
  EXPECT_TRUE(OpenAs(folder.Write("t.txt", "some text"), 4)->is_proven()) << "it was read whole";
}

// What a proof of `data` reads, with what is known before and after.
int64_t BytesRead(const Dataset& data, KnownParts& known) {
  Proof proof;
  proof.known = &known;
  EXPECT_EQ(data.Prove(proof), absl::OkStatus());
  EXPECT_EQ(proof.bytes, data.BytesToProve());
  return proof.bytes - proof.not_read;
}

TEST(DataSourceTest, WhatIsKnownIsNotReadAgain) {
  TempFolder folder;
  KnownParts known;
  const std::string path = WriteStream(folder, "ours", SomeTokens(4000));
  const auto data = OpenAs(path, 8);
  const int64_t index = static_cast<int64_t>(fs::file_size(path + "/tokens.idx"));
  EXPECT_EQ(BytesRead(*data, known), 8000 + index);
  EXPECT_EQ(BytesRead(*data, known), 0);
  EXPECT_EQ(BytesRead(*OpenAs(path, 8), known), 0) << "the next generation";
  AwaitAnotherTick(path + "/tokens.bin");
  ASSERT_EQ(::chmod((path + "/tokens.bin").c_str(), 0600), 0);
  EXPECT_EQ(BytesRead(*data, known), 8000) << "of the file that was altered alone";

  folder.Write("m.idx", IndexBytes(8, 2, {200}, {0, 1}));
  const std::string others = folder.Write("m.bin", Bytes(SomeTokens(200)));
  DataOptions options;
  options.known_digest = SummaryOf(others)->digest;
  const auto megatron = Dataset::Read(*OpenData(others), others, 5, 0, options);
  EXPECT_EQ(BytesRead(*megatron, known), megatron->BytesToProve());
  EXPECT_EQ(BytesRead(*megatron, known), 0);
}

// Both of one file that stays open, and of one of so many that it is opened again for each read.
TEST(DataSourceTest, TextThatWasTouchedIsDigestedAgain) {
  TempFolder folder;
  const std::string text(100, 'x');
  for (int i = 100; i < 300; ++i) folder.Write("t/" + std::to_string(i), text);
  const auto data = OpenAs(folder / "t", 9);
  ASSERT_TRUE(data.ok()) << data.status();
  for (const int64_t file : {0, 150}) {
    const std::string path = folder / "t/" + std::to_string(100 + file);
    struct stat before;
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    AwaitAnotherTick(path);
    EXPECT_TRUE(ReadRow(*data, Split::kTrain, file * 100 / 9, 9).ok());
    EXPECT_FALSE(*data->TakeTouched(false));
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    EXPECT_TRUE(ReadRow(*data, Split::kTrain, (file * 100 + 9) / 9, 9).ok());
    EXPECT_TRUE(*data->TakeTouched(false)) << file;
    Proof proof;
    EXPECT_EQ(data->Prove(proof), absl::OkStatus()) << "another mode is no other text";
    EXPECT_FALSE(*data->TakeTouched(true)) << file;
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(50).put('y');
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    Proof again;
    EXPECT_THAT(std::string(data->Prove(again).message()), HasSubstr("has digest")) << file;
    folder.Write("t/" + std::to_string(100 + file), text);
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    Proof as_before;
    EXPECT_EQ(data->Prove(as_before), absl::OkStatus());
  }
}

// A rank whose node has just digested them does not read gigabytes before its first step.
TEST(DataSourceTest, OthersTokensOfAKnownDigestAreComparedLater) {
  TempFolder folder;
  const std::vector<uint16_t> tokens = SomeTokens(200);
  folder.Write("m.idx", IndexBytes(8, 2, {200}, {0, 1}));
  const std::string path = folder.Write("m.bin", Bytes(tokens));
  DataOptions options;
  for (const std::string& known : {SummaryOf(path)->digest, Sha256Hex("other")}) {
    options.known_digest = known;
    const auto data = Dataset::Read(*OpenData(path), path, 5, 0, options);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_FALSE(data->is_proven());
    EXPECT_EQ(data->summary().digest, known);
    EXPECT_EQ(ReadRow(*data, Split::kTrain, 3, 5)->tokens, Wide(tokens, 15, 5));
    Proof all;
    const absl::Status proof = data->Prove(all);
    EXPECT_EQ(proof.ok(), known == SummaryOf(path)->digest);
    if (!proof.ok()) {
      EXPECT_THAT(std::string(proof.message()),
                  HasSubstr("m.bin has digest " + SummaryOf(path)->digest + ", the job was planned for " + known));
    }
  }
  options.vocabulary = 900;  // token 141 is 987
  const auto small = Dataset::Read(*OpenData(path), path, 5, 0, options);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_TRUE(ReadRow(*small, Split::kTrain, 0, 5).ok());
  EXPECT_THAT(std::string(ReadRow(*small, Split::kTrain, 28, 5).status().message()),
              HasSubstr("m.bin has 980 as token 140; tokens are 0 to 899 for this model"))
      << "what is beyond the model is found where it is read";
}

// As the worker opens what lies beneath its roots.
TEST(DataSourceTest, WhatLiesBesideAFileIsOpenedBeneathTheRoots) {
  TempFolder root, outside;
  const FileRoots roots({root.path()});
  const auto open = [&roots](const std::string& target) { return roots.OpenForRead("data.path", target); };
  const std::vector<uint16_t> tokens = SomeTokens(40);
  root.Write("m.idx", IndexBytes(8, 2, {40}, {0, 1}));
  const std::string path = root.Write("m.bin", Bytes(tokens));
  const auto summarize = [&] { return SummarizeData(*open(path), path, open); };
  ASSERT_TRUE(summarize().ok()) << summarize().status();
  EXPECT_EQ(summarize()->bytes, 80 + static_cast<int64_t>(fs::file_size(root / "m.idx")));
  fs::rename(root / "m.idx", outside / "m.idx");
  fs::create_symlink(outside / "m.idx", root / "m.idx");
  EXPECT_EQ(summarize().status().code(), absl::StatusCode::kPermissionDenied) << summarize().status();
  // Our folder as a download has it: links to what lies elsewhere beneath the root.
  WriteStream(root, "blobs", tokens);
  for (const char* file : {"tokens.json", "tokens.bin", "tokens.idx"}) {
    fs::create_directories(root / "linked");
    fs::create_symlink(fs::path("../blobs") / file, fs::path(root / "linked") / file);
  }
  const auto linked = SummarizeData(*open(root / "linked"), root / "linked", open);
  ASSERT_TRUE(linked.ok()) << linked.status();
  EXPECT_EQ(linked->tokens, 40);
}

TEST(DataSourceTest, AFolderOfTextMayHoldAFileOfThatName) {
  TempFolder folder;
  folder.Write("a.txt", "some text");
  folder.Write("tokens.json", "{\"what\": \"a page about tokens\"}");
  const auto summary = SummaryOf(folder.path());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->kind, DataKind::kText);
  folder.Write("b.bin", "\x01\x02");
  EXPECT_THAT(ErrorOf(folder.path()),
              HasSubstr("b.bin is token numbers in a file of their own (Megatron-LM, nanoGPT), not plain text; "
                        "give the .bin itself as data.path"));
}

}  // namespace
}  // namespace motley
