#include "worker/engine/nccl/nccl_log_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/landlock.h"

namespace motley::engine {
namespace {

constexpr const char* kNames[] = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"};

class NcclLogFileTest : public testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
  }
};

// As NCCL opens it: for writing, from the start, line by line.
FILE* OpenAsNccl() {
  FILE* const file = std::fopen(std::getenv("NCCL_DEBUG_FILE"), "w");
  if (file != nullptr) setlinebuf(file);
  return file;
}

TEST_F(NcclLogFileTest, GivesEachLineOnce) {
  const auto log = NcclLogFile::Open();
  ASSERT_NE(log, nullptr);
  EXPECT_STREQ(std::getenv("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(log->TakeNew(), "") << "NCCL has not opened it";
  FILE* const nccl = OpenAsNccl();
  ASSERT_NE(nccl, nullptr);
  std::fputs("one\ntwo\n", nccl);
  EXPECT_EQ(log->TakeNew(), "one\ntwo\n");
  EXPECT_EQ(log->TakeNew(), "");
  std::fputs("three\n", nccl);
  EXPECT_EQ(log->TakeNew(), "three\n");
  std::fclose(nccl);
}

TEST_F(NcclLogFileTest, IsBounded) {
  const auto log = NcclLogFile::Open();
  FILE* const nccl = OpenAsNccl();
  const std::string line = std::string(999, 'x') + "\n";
  size_t taken = 0;
  for (size_t written = 0; written < 2 * NcclLogFile::kMostBytes; written += line.size()) {
    std::fputs(line.c_str(), nccl);
    if (written < 10000 || written % 1000000 == 0) taken += log->TakeNew().size();
  }
  taken += log->TakeNew().size();
  EXPECT_LE(taken, NcclLogFile::kMostBytes);
  EXPECT_GT(taken, NcclLogFile::kMostBytes / 2);
  std::fclose(nccl);
}

TEST_F(NcclLogFileTest, TheUsersOwnLogIsLeftAlone) {
  setenv("NCCL_DEBUG", "WARN", 1);
  EXPECT_EQ(NcclLogFile::Open(), nullptr);
  EXPECT_STREQ(std::getenv("NCCL_DEBUG"), "WARN");
  EXPECT_EQ(std::getenv("NCCL_DEBUG_FILE"), nullptr);
}

// A rank is held to its files before it opens NCCL.
TEST_F(NcclLogFileTest, IsThereForARankThatIsHeldToItsFiles) {
  if (!LandlockVersion().ok()) GTEST_SKIP() << LandlockVersion().status();
  const auto held = [] {
    const auto grants = RestrictFiles({{"/usr", FileAccess::kRead}});
    const auto log = NcclLogFile::Open();
    FILE* const nccl = grants.ok() && log != nullptr ? OpenAsNccl() : nullptr;
    if (nccl == nullptr || std::fopen("/tmp/nccl-log-file-test", "w") != nullptr) _exit(1);
    std::fputs("one\n", nccl);
    _exit(log->TakeNew() == "one\n" ? 0 : 2);
  };
  EXPECT_EXIT(held(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace motley::engine
