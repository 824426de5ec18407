#include "worker/daemon/storage_check.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/base/sha256.h"
#include "common/checkpoint/byte_tokenizer.h"
#include "common/weights/weights_sample.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/data/token_data.h"
#include "tests/common/weights/weights_fixture.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

class StorageCheckTest : public ::testing::Test {
 protected:
  StorageCheckTest() : folder_(::testing::TempDir() + "/storage-check-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/text") << std::string(1000, 'a');
    check_ = {JobId("job"), Epoch(2), folder_ + "/text", folder_ + "/checkpoints/job", "secret", false, "probe"};
  }
  ~StorageCheckTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_;
  StorageReport Check(const StorageCheckCommand& check) const {
    return CheckStorage(check, FileRoots({folder_}), clock_, absl::ZeroDuration());
  }

  const SystemClock clock_;
  StorageCheckCommand check_;
};

TEST_F(StorageCheckTest, OneWritesTheOtherReads) {
  EXPECT_FALSE(Check(check_).token_seen);
  StorageCheckCommand write = check_;
  write.write_token = true;
  const StorageReport wrote = Check(write);
  EXPECT_EQ(wrote.error, "");
  EXPECT_TRUE(wrote.token_seen);
  const StorageReport read = Check(check_);
  EXPECT_TRUE(read.token_seen);
  EXPECT_EQ(read.data, TextSummary(1000, Sha256Hex(std::string(1000, 'a'))));
  EXPECT_EQ(read.data, wrote.data);
  EXPECT_EQ(read.validation, DataSummary()) << "the job has none";
  EXPECT_EQ(read.epoch, Epoch(2));
  EXPECT_EQ(read.check_id, "probe");
  check_.token = "of another job";
  EXPECT_FALSE(Check(check_).token_seen);
}

// Of two clusters with one share: each one's nodes would take the folder for another than their own.
TEST_F(StorageCheckTest, JobsOfOneIdDoNotOverwriteEachOthersToken) {
  StorageCheckCommand one = check_, other = check_;
  one.job_uid = JobUid(std::string(32, '1')), other.job_uid = JobUid(std::string(32, '2'));
  one.write_token = other.write_token = true;
  other.token = "the other's";
  EXPECT_TRUE(Check(one).token_seen && Check(other).token_seen);
  one.write_token = other.write_token = false;
  EXPECT_TRUE(Check(one).token_seen && Check(other).token_seen);
  one.job_uid = JobUid("../../etc");
  EXPECT_THAT(Check(one).error, HasSubstr("job_uid is no uid"));
}

TEST_F(StorageCheckTest, ACheckpointThatAnotherNodeDoubtsIsReadWhole) {
  const std::string root = folder_ + "/checkpoints/job";
  std::filesystem::create_directories(root);
  ASSERT_TRUE(WriteTestCheckpoint(root, 20, TinyModel(true), 0.5).ok());
  StorageCheckCommand verify{JobId("job"), Epoch(2), "", "", "", false, "second"};
  verify.verify_checkpoint = root + "/" + NameOf(20);
  EXPECT_EQ(Check(verify).error, "");
  EXPECT_EQ(Check(verify).check_id, "second");
  std::fstream file(verify.verify_checkpoint + "/rank-0.bin", std::ios::in | std::ios::out | std::ios::binary);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(0).put(byte);
  file.close();
  EXPECT_THAT(Check(verify).error, HasSubstr("rank-0.bin was altered"));
  EXPECT_EQ(Check(verify).error_code, absl::StatusCode::kDataLoss);
  const std::string manifest = verify.verify_checkpoint + "/manifest.json";
  std::filesystem::rename(manifest, root + "/kept");
  std::filesystem::create_symlink(root + "/kept", manifest);
  EXPECT_THAT(Check(verify).error, HasSubstr("manifest.json is a symbolic link")) << "not followed";
  verify.verify_checkpoint = root + "/" + NameOf(40);
  EXPECT_EQ(Check(verify).error_code, absl::StatusCode::kNotFound) << "not seen here: no verdict";
  verify.verify_checkpoint = "/etc";
  EXPECT_NE(Check(verify).error, "") << "outside of the roots";
}

TEST_F(StorageCheckTest, NamesWhatIsMissing) {
  check_.data_path = folder_ + "/nothing";
  EXPECT_THAT(Check(check_).error, HasSubstr("/nothing"));
  EXPECT_EQ(Check(check_).error_code, absl::StatusCode::kNotFound);
  check_.data_path = folder_ + "/text";
  check_.checkpoint_folder = folder_ + "/text/inside-a-file";
  check_.write_token = true;
  EXPECT_THAT(Check(check_).error, HasSubstr("/text/inside-a-file"));
}

TEST_F(StorageCheckTest, TheInitialWeightsAreThereAndBeneathARoot) {
  check_.initial = folder_;
  EXPECT_EQ(Check(check_).error, "");
  check_.initial = folder_ + "/old";
  EXPECT_THAT(Check(check_).error, HasSubstr("checkpoint.initial: "));
  EXPECT_EQ(Check(check_).error_code, absl::StatusCode::kNotFound);
  check_.initial = "/elsewhere";
  EXPECT_THAT(Check(check_).error, HasSubstr("checkpoint.initial: '/elsewhere' lies beneath none of"));
}

TEST_F(StorageCheckTest, OfAHuggingFaceFolderItReportsWhatItHolds) {
  std::filesystem::create_directories(folder_ + "/models");
  const TempFolder models{folder_ + "/models"};
  WriteShards(models, TinyLlama(), TensorsOfTest({TinyLlama()}), 3);
  models.Write("tokenizer.json", "{}");
  check_.initial = models.path();
  const StorageReport report = Check(check_);
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.initial_digest, SampleWeights(models.path(), OpenAnywhere)->digest);
  EXPECT_EQ(report.initial_tokenizer, Sha256Hex("{}"));
  models.Write("tokenizer.json", ByteTokenizer());
  EXPECT_EQ(Check(check_).initial_tokenizer, "") << "bytes";
  std::filesystem::resize_file(models.Write("vocab.json", ""), (64 << 20) + 1);
  EXPECT_THAT(Check(check_).error, HasSubstr("checkpoint.initial: " + models.path() + "/vocab.json has 67108865 bytes"));
  std::filesystem::remove(models / "vocab.json");
  check_.initial = folder_;
  EXPECT_EQ(Check(check_).initial_digest, "") << "no weights of HuggingFace";
  check_.initial = models.path();
  std::filesystem::remove(models / "model-00002-of-00003.safetensors");
  EXPECT_THAT(Check(check_).error, HasSubstr("checkpoint.initial: " + models.path() + " lacks model-00002-of-00003.safetensors"));
  EXPECT_EQ(Check(check_).error_code, absl::StatusCode::kNotFound);
}

TEST_F(StorageCheckTest, DataOfValidationsAreReadToo) {
  std::ofstream(folder_ + "/held-out") << "other text";
  check_.validation_path = folder_ + "/held-out";
  const StorageReport report = Check(check_);
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.data.bytes, 1000);
  EXPECT_EQ(report.validation, TextSummary(10, Sha256Hex("other text")));
  check_.validation_path = folder_ + "/nothing";
  EXPECT_THAT(Check(check_).error, HasSubstr("/nothing"));
  EXPECT_EQ(Check(check_).error_code, absl::StatusCode::kNotFound);
  std::filesystem::create_directory(folder_ + "/empty");
  check_.validation_path = folder_ + "/empty";
  EXPECT_THAT(Check(check_).error, testing::StartsWith("data.validation_path: ")) << "which of the two it is";
  check_.validation_path = "/etc/hostname";
  EXPECT_THAT(Check(check_).error, HasSubstr("data.validation_path: '/etc/hostname' lies beneath none of"));
}

TEST_F(StorageCheckTest, PreparedTokensAreToldByTheirJson) {
  TempFolder tokens{folder_};
  TokenRowsText text;
  text.rows = {{{1, 2, 3}, {4, 5}}, {{6, 7, 8, 9}}};
  check_.data_path = WriteRows(tokens, "rows", text, 6);
  const StorageReport report = Check(check_);
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.data.kind, DataKind::kRows);
  EXPECT_EQ(report.data.rows, 2);
  EXPECT_EQ(report.data.row_tokens, 6);
  EXPECT_EQ(report.data.tokens, 9);
  EXPECT_EQ(report.data.trained_tokens, 6);
  EXPECT_EQ(report.data.greatest_token, 9);
  EXPECT_EQ(report.data.tokenizer, Sha256Hex("tokenizer"));
  EXPECT_EQ(report.data.digest, Sha256Hex(TempFolder::Read(check_.data_path + "/tokens.json")));
  std::filesystem::resize_file(check_.data_path + "/tokens.bin", 10);
  EXPECT_THAT(Check(check_).error, HasSubstr("rows/tokens.bin has 10 bytes, where tokens.json beside it says 18"));
  EXPECT_EQ(Check(check_).error_code, absl::StatusCode::kFailedPrecondition);
}

TEST_F(StorageCheckTest, NoCheckpointFolderNoToken) {
  check_.token.clear();
  check_.checkpoint_folder.clear();
  EXPECT_TRUE(Check(check_).token_seen);
}

TEST_F(StorageCheckTest, PathsOutsideTheRootsAreRefused) {
  const auto error = [&](const std::vector<std::string>& roots) {
    return CheckStorage(check_, FileRoots(roots), clock_, absl::ZeroDuration()).error;
  };
  check_.write_token = true;
  EXPECT_THAT(error({}), HasSubstr("data.path: this node gives no folder to jobs; set roots in [files]"));
  EXPECT_THAT(error({folder_ + "/checkpoints"}), HasSubstr("data.path: '" + check_.data_path + "' lies beneath none of"));
  check_.checkpoint_folder = folder_ + "/../elsewhere";
  EXPECT_THAT(error({folder_}), HasSubstr("checkpoint.folder must not hold '..'"));
  check_.checkpoint_folder = folder_ + "/checkpoints/job";
  check_.job = JobId("../job");
  EXPECT_THAT(error({folder_}), HasSubstr("job_id must be"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/checkpoints"));
}

// A link prepared under the token's name, and one under the folder's, led the writing into files that were not ours.
TEST_F(StorageCheckTest, PreparedLinksAreNotFollowed) {
  const std::string foreign = folder_ + "/foreign", outside = folder_ + "/root/out";
  std::ofstream(foreign) << "theirs";
  check_.write_token = true;
  std::filesystem::create_directories(check_.checkpoint_folder);
  std::filesystem::create_symlink(foreign, TokenPath(check_));
  const StorageReport report = Check(check_);
  EXPECT_EQ(report.error, "");
  EXPECT_TRUE(report.token_seen);
  EXPECT_FALSE(std::filesystem::is_symlink(TokenPath(check_)));
  std::string text;
  std::ifstream(foreign) >> text;
  EXPECT_EQ(text, "theirs");
  std::filesystem::create_directories(folder_ + "/root");
  std::filesystem::create_directory_symlink(folder_ + "/checkpoints", outside);
  check_.data_path = folder_ + "/root/text";
  std::ofstream(check_.data_path) << std::string(1000, 'a');
  check_.checkpoint_folder = outside + "/job";
  EXPECT_THAT(CheckStorage(check_, FileRoots({folder_ + "/root"}), clock_, absl::ZeroDuration()).error,
              HasSubstr("/root/out/job': 'out/job' leads out of its folder"));
}

// A link in a root that a local user points inside and outside by turns: what lies outside is never read.
TEST_F(StorageCheckTest, ALinkThatFlipsNeverLeadsOut) {
  const std::string root = folder_ + "/root", link = root + "/link", spare = root + "/spare";
  std::filesystem::create_directories(root);
  std::ofstream(root + "/text") << "for jobs";
  std::ofstream(folder_ + "/secret") << "not for jobs";
  std::filesystem::create_symlink("text", link);
  std::filesystem::create_symlink("../secret", spare);
  check_.data_path = link;
  check_.checkpoint_folder = root + "/checkpoints/job";
  check_.write_token = true;  // takes long, after the data is opened and before it is read
  std::atomic<bool> stop = false;
  std::thread flipper([&] {
    while (!stop) ::renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, spare.c_str(), RENAME_EXCHANGE);
  });
  int inside = 0, refused = 0, foreign = 0;
  for (int tries = 0; tries < 20'000 && inside + foreign < 50; ++tries) {
    const StorageReport report = CheckStorage(check_, FileRoots({root}), clock_, absl::ZeroDuration());
    const bool is_foreign = report.data.digest == Sha256Hex("not for jobs");
    ++(is_foreign ? foreign : report.error.empty() ? inside : refused);
  }
  stop = true;
  flipper.join();
  EXPECT_EQ(foreign, 0) << inside << " inside, " << refused << " refused";
}

TEST_F(StorageCheckTest, TheTokenIsRemovedWhereItWasWritten) {
  check_.write_token = true;
  ASSERT_EQ(Check(check_).error, "");
  RemoveToken(check_, FileRoots({folder_ + "/elsewhere"}));
  EXPECT_TRUE(std::filesystem::exists(TokenPath(check_)));
  RemoveToken(check_, FileRoots({folder_}));
  EXPECT_FALSE(std::filesystem::exists(TokenPath(check_)));
}

}  // namespace
}  // namespace motley::worker
