#include "common/base/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LoggingTest, LinesCarryTheComponentAndAreFilteredByLevel) {
  unsetenv("JOURNAL_STREAM");
  testing::internal::CaptureStderr();
  InitLogging("motley-test", LogLevel::kInfo);
  LogInfo("braces {} and %s stay as they are");
  Log(LogLevel::kDebug, "too fine");
  FlushLog();
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_THAT(out, HasSubstr(" I motley-test: braces {} and %s stay as they are\n"));
  EXPECT_THAT(out, Not(HasSubstr("too fine")));
}

TEST(LoggingTest, TheJournalGetsPrioritiesAndNoTime) {
  setenv("JOURNAL_STREAM", "8:1", 1);
  testing::internal::CaptureStderr();
  InitLogging("motley-test", LogLevel::kDebug);
  LogError("e");
  LogWarning("w");
  LogInfo("i");
  Log(LogLevel::kDebug, "d");
  unsetenv("JOURNAL_STREAM");
  FlushLog();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "<3>motley-test: e\n<4>motley-test: w\n<6>motley-test: i\n<7>motley-test: d\n");
}

TEST(LoggingTest, AMessageIsOneLineWhateverItHolds) {
  setenv("JOURNAL_STREAM", "8:1", 1);
  testing::internal::CaptureStderr();
  InitLogging("motley-test", LogLevel::kInfo);
  LogInfo("data.path is '/data\n<6>motley-test: job a succeeded\x1b[2J\xff'");
  unsetenv("JOURNAL_STREAM");
  FlushLog();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "<6>motley-test: data.path is '/data\\n<6>motley-test: job a succeeded\\u001b[2J\\xff'\n");
}

}  // namespace
}  // namespace motley
