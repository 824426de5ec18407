#include "worker/daemon/storage_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "common/data/dataset.h"
#include "tests/common/base/counting_clock.h"
#include "tests/common/base/no_descriptors.h"
#include "tests/common/base/patience.h"
#include "worker/daemon/storage_check.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

class StorageCheckerTest : public ::testing::Test {
 protected:
  StorageCheckerTest() : folder_(::testing::TempDir() + "/storage-checker-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/text") << std::string(1000, 'a');
    check_ = {JobId("job"), Epoch(2), folder_ + "/text", folder_ + "/checkpoints/job", "secret", true, "probe"};
    Restart({});
  }
  ~StorageCheckerTest() override {
    checker_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Restart(StorageCheckerConfig config) {
    checker_.reset();
    config.file_roots = {folder_};
    checker_ = std::make_unique<StorageChecker>(std::move(config), clock_, outbox_);
  }
  StorageReport Answer() {
    outbox_.Wait(Patience(absl::Seconds(30)), /*for_reports=*/true);
    const auto report = outbox_.TryPop();
    if (report && std::holds_alternative<StorageReport>(*report)) return std::get<StorageReport>(*report);
    ADD_FAILURE() << "no answer";
    return {};
  }
  // A pipe without a writer: opening it for reading waits for ever.
  std::string Pipe() {
    const std::string path = folder_ + "/pipe";
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  const std::string folder_;
  const CountingClock clock_;
  Outbox outbox_;
  StorageCheckCommand check_;
  std::unique_ptr<StorageChecker> checker_;
};

TEST_F(StorageCheckerTest, AnswersAndRemovesItsToken) {
  checker_->Check(check_);
  const StorageReport report = Answer();
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.data.bytes, 1000);
  EXPECT_TRUE(report.token_seen);
  EXPECT_EQ(report.check_id, "probe");
  EXPECT_TRUE(std::filesystem::exists(TokenPath(check_)));
  checker_.reset();
  EXPECT_FALSE(std::filesystem::exists(TokenPath(check_)));
}

// A rank need not read again what its node has just digested.
TEST_F(StorageCheckerTest, OthersTokensThatItDigestsAreKnown) {
  const UniqueFd memory = *NewKnownParts();
  StorageCheckerConfig config;
  config.known_parts = memory.get();
  Restart(config);
  check_.data_path = folder_ + "/tokens.bin";
  std::ofstream(check_.data_path) << std::string(1000, 'a');
  checker_->Check(check_);
  const StorageReport report = Answer();
  ASSERT_EQ(report.error, "");
  DataOptions options;
  options.known_digest = report.data.digest;
  const auto data = Dataset::Read(*OpenData(check_.data_path), check_.data_path, 8, 0, options);
  ASSERT_TRUE(data.ok()) << data.status();
  KnownParts known(memory.get());
  Proof proof;
  proof.known = &known;
  EXPECT_EQ(data->Prove(proof), absl::OkStatus());
  EXPECT_EQ(proof.not_read, 1000);
}

TEST_F(StorageCheckerTest, SaysWhatIsMissing) {
  check_.data_path = folder_ + "/nothing";
  checker_->Check(check_);
  EXPECT_THAT(Answer().error, HasSubstr("/nothing"));
}

// A program that never answers stands for a file system that does not.
TEST_F(StorageCheckerTest, ACheckThatHangsIsKilledAndNamesThePath) {
  Restart({.program = folder_ + "/hang", .check_patience = absl::Milliseconds(100)});
  std::ofstream(folder_ + "/hang") << "#!/bin/sh\nexec sleep 1000\n";
  chmod((folder_ + "/hang").c_str(), 0700);
  checker_->Check(check_);
  const StorageReport report = Answer();
  EXPECT_EQ(report.check_id, "probe");
  EXPECT_THAT(report.error, HasSubstr("took longer than 100ms"));
  EXPECT_THAT(report.error, HasSubstr(check_.data_path));
}

TEST_F(StorageCheckerTest, ANamedPipeIsAnErrorAndWedgesNothing) {
  check_.data_path = Pipe();
  Restart({.check_patience = absl::Seconds(2)});
  checker_->Check(check_);
  EXPECT_THAT(Answer().error, HasSubstr(check_.data_path));
}

TEST_F(StorageCheckerTest, TheEndDoesNotWaitForAHangingCheckAndTheOthersGoOn) {
  Restart({.program = folder_ + "/hang", .at_a_time = 1});
  std::ofstream(folder_ + "/hang") << "#!/bin/sh\nexec sleep 1000\n";
  chmod((folder_ + "/hang").c_str(), 0700);
  checker_->Check(check_);
  checker_->Check(check_);
  checker_->Drop({JobId("job"), Epoch(2), false, "over"});
  checker_.reset();
  EXPECT_EQ(outbox_.size(), 0u);
}

// What it then says is of itself, not of data or folder.
TEST_F(StorageCheckerTest, ACheckThatCannotBeStartedIsTriedAgainForAWhile) {
  Restart({.start_patience = absl::Milliseconds(100)});
  std::optional<NoDescriptors> none(std::in_place);
  checker_->Check(check_);
  StorageReport report = Answer();
  EXPECT_EQ(report.error_code, kCheckNotStarted);
  EXPECT_EQ(report.check_id, "probe");
  EXPECT_THAT(report.error, HasSubstr("could not be started ("));
  EXPECT_THAT(report.error, HasSubstr("Too many open files"));

  none.reset();
  Restart({.start_patience = absl::Hours(1)});
  none.emplace();
  const int asked = clock_.asked;
  checker_->Check(check_);
  while (clock_.asked < asked + 4) std::this_thread::yield();  // by a checker that tried, and waits to try again
  EXPECT_EQ(outbox_.size(), 0u);
  none.reset();
  report = Answer();
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.data.bytes, 1000);
}

TEST_F(StorageCheckerTest, AChildThatDiesIsAnAnswer) {
  Restart({.program = "/bin/false"});
  checker_->Check(check_);
  EXPECT_THAT(Answer().error, HasSubstr("ended without an answer"));
}

}  // namespace
}  // namespace motley::worker
