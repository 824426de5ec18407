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
    check_ = {JobId("job"), Epoch(2), folder_ + "/text", folder_ + "/checkpoints/job", "secret", false, "probe"};
  }
  ~StorageCheckTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_;
  StorageReport Check(const StorageCheckCommand& check) const { return CheckStorage(check, clock_, absl::ZeroDuration()); }

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
  EXPECT_EQ(read.data_bytes, 1000);
  EXPECT_EQ(read.data_digest, wrote.data_digest);
  EXPECT_EQ(read.epoch, Epoch(2));
  EXPECT_EQ(read.check_id, "probe");
  check_.token = "of another job";
  EXPECT_FALSE(Check(check_).token_seen);
}

TEST_F(StorageCheckTest, NamesWhatIsMissing) {
  check_.data_path = folder_ + "/nothing";
  EXPECT_THAT(Check(check_).error, HasSubstr("/nothing"));
  check_.data_path = folder_ + "/text";
  check_.checkpoint_folder = folder_ + "/text/inside-a-file";
  check_.write_token = true;
  EXPECT_THAT(Check(check_).error, HasSubstr("/text/inside-a-file"));
}

TEST_F(StorageCheckTest, NoCheckpointFolderNoToken) {
  check_.token.clear();
  check_.checkpoint_folder.clear();
  EXPECT_TRUE(Check(check_).token_seen);
}

}  // namespace
}  // namespace motley::worker
