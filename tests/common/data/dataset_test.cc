#include "common/data/dataset.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "common/base/beneath.h"
#include "common/base/sha256.h"
#include "common/data/data_files.h"
#include "common/data/data_size.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/data/token_data.h"

namespace motley {
namespace {

std::string Message(const absl::Status& status) { return std::string(status.message()); }

absl::StatusOr<DataSummary> Summarize(const std::string& path) {
  const absl::StatusOr<FileDescriptor> opened = OpenData(path);
  return opened.ok() ? SummarizeData(*opened, path) : opened.status();
}
absl::StatusOr<Dataset> OpenDataset(const std::string& path, int64_t seq_len, double validation_fraction) {
  const absl::StatusOr<FileDescriptor> opened = OpenData(path);
  return opened.ok() ? Dataset::Read(*opened, path, seq_len, validation_fraction) : opened.status();
}

// The seq_len + 1 bytes of a sample of text.
std::string SampleText(const Dataset& data, Split split, int64_t index) {
  const auto row = ReadRow(data, split, index, 7);
  EXPECT_TRUE(row.ok()) << row.status();
  std::string text(row->tokens.begin(), row->tokens.end());
  text.push_back(static_cast<char>(row->targets.back()));
  EXPECT_EQ(std::string(row->targets.begin(), row->targets.end()), text.substr(1));
  EXPECT_EQ(row->lengths, DocumentLengths{7});
  EXPECT_EQ(row->counted, std::vector<uint8_t>(7, 1));
  return text;
}

TEST(DatasetTest, SamplesOverlapByOneByteAndSplitsDoNot) {
  TempFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>('0' + i % 64));
  const std::string path = folder.Write("t.txt", text);
  auto data = OpenDataset(path, 7, 0.25);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->num_samples(Split::kTrain), 10);      // 75 bytes: (75 - 1) / 7
  EXPECT_EQ(data->num_samples(Split::kValidation), 3);  // 25 bytes: (25 - 1) / 7
  EXPECT_EQ(SampleText(*data, Split::kTrain, 9), text.substr(63, 8));
  EXPECT_EQ(SampleText(*data, Split::kValidation, 2), text.substr(75 + 14, 8));
  EXPECT_EQ(data->summary().bytes, 100);
  EXPECT_EQ(data->summary().digest, Sha256Hex(text));
}

TEST(DatasetTest, FoldersInNameOrderWithoutHiddenFiles) {
  TempFolder folder;
  folder.Write("b.txt", "second");
  folder.Write("a/inner.txt", "first");
  folder.Write(".hidden", "\xff");
  folder.Write(".git/x", "\xff");
  auto summary = Summarize(folder.path());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->bytes, 11);
  EXPECT_EQ(summary->digest, Sha256Hex("firstsecond"));
}

TEST(DatasetTest, NotUtf8NamesFileAndOffset) {
  TempFolder folder;
  folder.Write("a.txt", "fine \xc3\xa4");
  const std::string bad = folder.Write("b.txt", "ab\xc3(");
  auto summary = Summarize(folder.path());
  EXPECT_EQ(summary.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(summary.status()),
            "data file " + bad + " is not UTF-8 text: wrong byte sequence at byte 2; convert it (iconv) or leave it out");
  // A sequence may not go on in the next file, nor be cut off by a block's end.
  folder.Write("b.txt", "abc\xe2\x82");
  EXPECT_NE(Message(Summarize(folder.path()).status()).find("at byte 3"), std::string::npos);
  folder.Write("b.txt", std::string((1 << 20) - 1, 'x') + "\xe2\x82\xac");
  EXPECT_TRUE(Summarize(folder.path()).ok());
}

TEST(DatasetTest, MissingUnreadableEmptyOrOdd) {
  TempFolder folder;
  const std::string missing = folder / "missing";
  EXPECT_EQ(Summarize(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(Message(Summarize(missing).status()).find(missing), std::string::npos);
  EXPECT_EQ(Summarize(folder.path()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Summarize("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
  if (::geteuid() != 0) {  // root may read everything
    const std::string secret = folder.Write("secret", "x");
    ::chmod(secret.c_str(), 0);
    EXPECT_EQ(Summarize(secret).status().code(), absl::StatusCode::kPermissionDenied);
  }
}

TEST(DatasetTest, APipeInTheFolderIsNamedAndNotWaitedFor) {
  TempFolder folder;
  folder.Write("a.txt", "text");
  const std::string pipe = folder / "b.txt";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(Summarize(folder.path()).status(),
            absl::InvalidArgumentError("data folder " + folder.path() + ": b.txt is a named pipe; give a regular file"));
  EXPECT_EQ(Summarize(pipe).status(), absl::InvalidArgumentError(pipe + " is a named pipe; give a regular file"));
}

TEST(DatasetTest, LinksInAFolderStayInIt) {
  TempFolder folder;
  folder.Write("data/a.txt", "first");
  const std::string secret = folder.Write("secret", "secret"), link = folder / "data/b.txt";
  ASSERT_EQ(::symlink("a.txt", link.c_str()), 0);
  EXPECT_EQ(Summarize(folder / "data")->bytes, 5) << "a file and the link to it are one text";
  for (const std::string& target : {secret, std::string("../secret")}) {
    ::unlink(link.c_str());
    ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
    const absl::Status status = Summarize(folder / "data").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_NE(Message(status).find("data: 'b.txt' leads out of its folder"), std::string::npos) << status;
  }
}

// As the worker opens what lies beneath its root.
absl::StatusOr<DataSummary> SummarizeBeneath(const TempFolder& root, const std::string& path) {
  const FileRoots roots({root.path()});
  const auto open = [&roots](const std::string& target) { return roots.OpenForRead("data.path", target); };
  const absl::StatusOr<FileDescriptor> opened = open(path);
  return opened.ok() ? SummarizeData(*opened, path, open) : opened.status();
}

TEST(DatasetTest, LinksWithinTheRootAreFollowed) {
  TempFolder root, outside;
  root.Write("blobs/b", "second");
  outside.Write("c", "secret");
  root.Write("data/a.txt", "first");
  const std::string link = root / "data/b.txt";
  for (const std::string& target : {std::string("../blobs/b"), root / "blobs/b", root / "data/../blobs/b"}) {
    ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
    const auto summary = SummarizeBeneath(root, root / "data");
    ASSERT_TRUE(summary.ok()) << target << ": " << summary.status();
    EXPECT_EQ(summary->digest, Sha256Hex("firstsecond")) << target;
    ::unlink(link.c_str());
  }
  ASSERT_EQ(::symlink((outside / "c").c_str(), link.c_str()), 0);
  EXPECT_EQ(SummarizeBeneath(root, root / "data").status().code(), absl::StatusCode::kPermissionDenied);
  ::unlink(link.c_str());
  ASSERT_EQ(::symlink("../blobs", link.c_str()), 0);
  EXPECT_NE(
      Message(SummarizeBeneath(root, root / "data").status()).find("'b.txt' is a link to '../blobs', a folder outside of it"),
      std::string::npos);
}

TEST(DatasetTest, ALinkToNothingIsNamed) {
  TempFolder root;
  root.Write("data/a.txt", "first");
  for (const char* target : {"gone.txt", "../blobs/gone"}) {
    ASSERT_EQ(::symlink(target, (root / "data/b.txt").c_str()), 0);
    const absl::Status status = SummarizeBeneath(root, root / "data").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_NE(Message(status).find(std::string("'b.txt' is a link to '") + target + "', where nothing is"), std::string::npos)
        << status;
    ::unlink((root / "data/b.txt").c_str());
  }
}

TEST(DatasetTest, OneFileOfManyNamesIsReadOnce) {
  TempFolder folder;
  const std::string file = folder.Write("b.txt", "text");
  ASSERT_EQ(::link(file.c_str(), (folder / "c.txt").c_str()), 0);
  ASSERT_EQ(::symlink("b.txt", (folder / "a.txt").c_str()), 0);
  EXPECT_EQ(Summarize(folder.path())->digest, Sha256Hex("text"));
}

TEST(DatasetTest, AFolderOfTheHubIsReadOnce) {
  TempFolder root;
  const std::string hub = root / "hub/datasets--a--b", blob(40, '3'), large(64, 'a');
  root.Write("hub/datasets--a--b/blobs/" + blob, "first");
  root.Write("hub/datasets--a--b/blobs/" + large, "second");
  root.Write("hub/datasets--a--b/refs/main", "abc");
  root.Write("hub/datasets--a--b/snapshots/abc/dir/keep.txt", "third");
  const std::string snapshot = hub + "/snapshots/abc";
  ASSERT_EQ(::symlink(("../../blobs/" + blob).c_str(), (snapshot + "/a.txt").c_str()), 0);
  ASSERT_EQ(::symlink(("../../../blobs/" + large).c_str(), (snapshot + "/dir/b.txt").c_str()), 0);
  for (const std::string& path : {snapshot, hub, hub + "/snapshots", root / "hub"}) {
    const auto summary = SummarizeBeneath(root, path);
    ASSERT_TRUE(summary.ok()) << path << ": " << summary.status();
    EXPECT_EQ(summary->digest, Sha256Hex("firstsecondthird")) << path;
  }
  // Of the same names in a folder of one's own all is read.
  root.Write("own/blobs/x", "one");
  root.Write("own/snapshots/y", "two");
  EXPECT_EQ(SummarizeBeneath(root, root / "own")->digest, Sha256Hex("onetwo"));
  root.Write("hub/datasets--a--b/snapshots/def/a.txt", "other");
  const absl::Status two = SummarizeBeneath(root, hub).status();
  EXPECT_EQ(two.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message(two).find("holds 2 revisions of one download"), std::string::npos) << two;
  EXPECT_NE(Message(two).find(hub + "/snapshots/abc"), std::string::npos) << two;
}

TEST(DatasetTest, NulsAreNoText) {
  TempFolder folder;
  const std::string late = std::string((1 << 20) + 3, 'x') + std::string(1, '\0') + "y";
  const std::string path = folder.Write("a.txt", late);
  EXPECT_EQ(Message(Summarize(path).status()).find("data file " + path + " is not plain text: it holds a NUL at byte 1048579"),
            0u)
      << Summarize(path).status();
}

// What was opened is read, whatever its path leads to by then.
TEST(DatasetTest, AChangedPathChangesNothing) {
  TempFolder folder;
  folder.Write("text", "ours");
  folder.Write("data/a.txt", "first");
  folder.Write("data/sub/b.txt", "second");
  folder.Write("secret/a.txt", "secret");
  const std::string text = folder / "text", data = folder / "data";
  const auto file = OpenData(text), files = OpenData(data);
  ASSERT_TRUE(file.ok() && files.ok());
  for (const std::string& path : {text, data}) {
    ASSERT_EQ(::rename(path.c_str(), (path + ".old").c_str()), 0);
    ASSERT_EQ(::symlink((folder / (path == text ? "secret/a.txt" : "secret")).c_str(), path.c_str()), 0);
  }
  EXPECT_EQ(SummarizeData(*file, text)->digest, Sha256Hex("ours"));
  EXPECT_EQ(SummarizeData(*files, data)->digest, Sha256Hex("firstsecond"));
  EXPECT_EQ(Dataset::Read(*files, data, 3, 0)->summary().digest, Sha256Hex("firstsecond")) << "and again";
}

TEST(DatasetTest, LinksToFoldersAreNoFoldersOfTheData) {
  TempFolder folder;
  folder.Write("data/a/x.txt", "first");
  folder.Write("secret/y.txt", "secret");
  ASSERT_EQ(::symlink("a", (folder / "data/b").c_str()), 0);
  EXPECT_EQ(Summarize(folder / "data")->digest, Sha256Hex("first"));
  ASSERT_EQ(::symlink("../secret", (folder / "data/c").c_str()), 0);
  EXPECT_EQ(Summarize(folder / "data").status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(DatasetTest, TooShortSaysHowManyBytesAreNeeded) {
  TempFolder folder;
  const std::string path = folder.Write("short.txt", "0123456789");
  const absl::Status status = OpenDataset(path, 16, 0.25).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(status).find("the data has 10 bytes; at least 68 are needed"), std::string::npos) << status;
  const std::string lever = Message(CheckDataSize(TextSummary(1000, ""), 64, 0.05, 32));
  EXPECT_NE(lever.find("32 validation samples (data.validation_samples; with 1 of them 1300 bytes are enough); "
                       "or give the validations data of their own: data.validation_path"),
            std::string::npos)
      << lever;
  for (const double fraction : {0.0, 0.05, 0.1, 0.5, 0.9}) {
    for (const int64_t samples : {0, 1, 32}) {
      const std::string text = Message(CheckDataSize(TextSummary(0, ""), 128, fraction, samples));
      const int64_t needed = std::stoll(text.substr(text.find("at least ") + 9));
      ASSERT_GT(needed, 128);
      EXPECT_TRUE(CheckDataSize(TextSummary(needed, ""), 128, fraction, samples).ok()) << fraction << " " << samples;
      EXPECT_FALSE(CheckDataSize(TextSummary(needed - 1, ""), 128, fraction, samples).ok()) << fraction << " " << samples;
    }
  }
}

TEST(DatasetTest, WithoutAValidationPart) {
  TempFolder folder;
  auto data = OpenDataset(folder.Write("t.txt", "0123456789"), 3, 0);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->num_samples(Split::kTrain), 3);
  EXPECT_EQ(data->num_samples(Split::kValidation), 0);
}

// Samples, order and digests are what jobs of before were trained on: every byte of every sample against the text as a whole.
TEST(DatasetTest, SamplesAreThoseOfTheFilesTogetherHoweverTheTextIsCut) {
  TempFolder folder;
  std::string text;
  for (int file = 0; file < 300; ++file) {  // more than stay open
    std::string part;
    for (int i = 0; i < file * 37 % 41; ++i) part.push_back(static_cast<char>('!' + (file * 7 + i * 11) % 90));
    char name[16];
    snprintf(name, sizeof(name), "%03d.txt", file);
    folder.Write(name, part);
    text += part;
  }
  constexpr int64_t kSeqLen = 7;
  const auto data = OpenDataset(folder.path(), kSeqLen, 0.2);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->summary(), TextSummary(static_cast<int64_t>(text.size()), Sha256Hex(text)));
  const auto all = static_cast<int64_t>(text.size()), held = static_cast<int64_t>(static_cast<double>(all) * 0.2);
  EXPECT_EQ(data->num_samples(Split::kTrain), (all - held - 1) / kSeqLen);
  EXPECT_EQ(data->num_samples(Split::kValidation), (held - 1) / kSeqLen);
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    const int64_t begin = split == Split::kTrain ? 0 : all - held;
    for (int64_t i = 0; i < data->num_samples(split); ++i) {
      ASSERT_EQ(SampleText(*data, split, i), text.substr(static_cast<size_t>(begin + i * kSeqLen), kSeqLen + 1));
    }
    EXPECT_EQ(ReadRow(*data, split, data->num_samples(split), kSeqLen).status().code(), absl::StatusCode::kOutOfRange);
  }
}

TEST(DatasetTest, AllIsForValidationsWhereTheyHaveDataOfTheirOwn) {
  TempFolder folder;
  const auto data = OpenDataset(folder.Write("t.txt", "0123456789abcdef"), 7, kAllForValidation);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->num_samples(Split::kTrain), 0);
  EXPECT_EQ(data->num_samples(Split::kValidation), 2);
  EXPECT_EQ(SampleText(*data, Split::kValidation, 1), "789abcde");
  EXPECT_NE(Message(OpenDataset(folder.Write("s.txt", "0123456"), 7, kAllForValidation).status()).find("at least 8 are needed"),
            std::string::npos);
}

TEST(DatasetTest, AFileThatChangesUnderItsReaderIsNamed) {
  TempFolder folder;
  const std::string text(1000, 'x'), path = folder / "data/b.txt";
  const auto open = [&] {
    folder.Write("data/a.txt", text);
    folder.Write("data/b.txt", text);
    auto data = OpenDataset(folder / "data", 7, 0.1);
    EXPECT_TRUE(data.ok()) << data.status();
    EXPECT_TRUE(ReadRow(*data, Split::kValidation, 0, 7).ok());
    return *std::move(data);
  };
  const auto says = [&](const Dataset& data, const std::string& words) {
    const absl::Status status = ReadRow(data, Split::kValidation, 0, 7).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(Message(status).find("data file " + path + " " + words), std::string::npos) << status;
    EXPECT_TRUE(ReadRow(data, Split::kTrain, 0, 7).ok()) << "of another file";
  };
  const Dataset longer = open();
  std::ofstream(path, std::ios::app) << "y";
  says(longer, "was lengthened from 1000 to 1001 bytes");
  const Dataset shorter = open();
  ASSERT_EQ(::truncate(path.c_str(), 990), 0);
  says(shorter, "was cut from 1000 to 990 bytes");
  const Dataset altered = open();
  const timespec times[2] = {{1, 0}, {1, 0}};  // as a write changes it, whatever the clock's steps
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  says(altered, "was written to");
  const Dataset replaced = open();
  ASSERT_EQ(::rename(folder.Write("other", text).c_str(), path.c_str()), 0);
  says(replaced, "was removed or replaced");
}

}  // namespace
}  // namespace motley
