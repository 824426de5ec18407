#include "worker/daemon/storage_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

class StorageCheckTest : public ::testing::Test {
 protected:
  StorageCheckTest() : folder_(::testing::TempDir() + "/storage-check-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/text") << std::string(1000, 'a');
    check_.set_job_id("job");
    check_.set_epoch(2);
    check_.set_data_path(folder_ + "/text");
    check_.set_checkpoint_folder(folder_ + "/checkpoints/job");
    check_.set_token("secret");
  }
  ~StorageCheckTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_;
  v1::StorageCheck check_;
};

TEST_F(StorageCheckTest, OneWritesTheOtherReads) {
  EXPECT_FALSE(CheckStorage(check_, absl::ZeroDuration()).token_seen());
  v1::StorageCheck write = check_;
  write.set_write_token(true);
  const v1::StorageCheckResult wrote = CheckStorage(write, absl::ZeroDuration());
  EXPECT_EQ(wrote.error(), "");
  EXPECT_TRUE(wrote.token_seen());
  const v1::StorageCheckResult read = CheckStorage(check_, absl::ZeroDuration());
  EXPECT_TRUE(read.token_seen());
  EXPECT_EQ(read.data_bytes(), 1000);
  EXPECT_EQ(read.data_digest(), wrote.data_digest());
  EXPECT_EQ(read.epoch(), 2);
  check_.set_token("of another job");
  EXPECT_FALSE(CheckStorage(check_, absl::ZeroDuration()).token_seen());
}

TEST_F(StorageCheckTest, NamesWhatIsMissing) {
  check_.set_data_path(folder_ + "/nothing");
  EXPECT_THAT(CheckStorage(check_, absl::ZeroDuration()).error(), HasSubstr("/nothing"));
  check_.set_data_path(folder_ + "/text");
  check_.set_checkpoint_folder(folder_ + "/text/inside-a-file");
  check_.set_write_token(true);
  EXPECT_THAT(CheckStorage(check_, absl::ZeroDuration()).error(), HasSubstr("/text/inside-a-file"));
}

TEST_F(StorageCheckTest, NoCheckpointFolderNoToken) {
  check_.clear_token();
  check_.clear_checkpoint_folder();
  EXPECT_TRUE(CheckStorage(check_, absl::ZeroDuration()).token_seen());
}

}  // namespace
}  // namespace motley::worker
