#include "common/base/line_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/common/base/patience.h"

namespace motley {
namespace {

constexpr size_t kPipeBytes = 4096;

class LineQueueTest : public testing::Test {
 protected:
  LineQueueTest() {
    EXPECT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
    EXPECT_EQ(fcntl(pipe_[1], F_SETPIPE_SZ, static_cast<int>(kPipeBytes)), static_cast<int>(kPipeBytes));
  }
  ~LineQueueTest() override {
    for (const int fd : pipe_) {
      if (fd >= 0) close(fd);
    }
  }
  static std::string DroppedLine(int64_t dropped) { return absl::StrCat("(", dropped, ")\n"); }
  // All lines up to one.
  std::vector<std::string> ReadUntil(const std::string& last) {
    std::string text;
    while (!absl::EndsWith(text, absl::StrCat(last, "\n"))) {
      char buffer[512];
      const ssize_t bytes = read(pipe_[0], buffer, sizeof(buffer));
      if (bytes <= 0) break;
      text.append(buffer, static_cast<size_t>(bytes));
    }
    return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  }

  int pipe_[2] = {-1, -1};
};

TEST_F(LineQueueTest, LinesAreWrittenInTheirOrder) {
  LineQueue queue(pipe_[1], 1000, DroppedLine);
  queue.Add("a\n", false);
  queue.Add("b\n", true);
  queue.Add("c\n", false);
  EXPECT_TRUE(queue.Flush(Patience(absl::Seconds(20))));
  EXPECT_EQ(ReadUntil("c"), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(LineQueueTest, NobodyWaitsForAReaderAndTheOldestAreDroppedAndCounted) {
  constexpr int kLines = 100;
  LineQueue filler(pipe_[1], 2 * kPipeBytes, DroppedLine);
  filler.Add(std::string(kPipeBytes - 1, 'x') + "\n", false);
  ASSERT_TRUE(filler.Flush(Patience(absl::Seconds(20))));
  LineQueue queue(pipe_[1], 60, DroppedLine);
  queue.Add("error\n", true);
  for (int i = 0; i < kLines; ++i) queue.Add(absl::StrCat("line ", 100 + i, "\n"), false);
  EXPECT_FALSE(queue.Flush(absl::Milliseconds(1)));
  std::vector<std::string> lines = ReadUntil("line 199");
  // The writer may hold the first one or two already, which then cannot be dropped.
  const auto said = std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return line[0] == '('; });
  ASSERT_NE(said, lines.end());
  int dropped = 0;
  ASSERT_TRUE(absl::SimpleAtoi(said->substr(1, said->size() - 2), &dropped)) << *said;
  EXPECT_EQ(dropped + static_cast<int>(lines.size()) - 2, kLines + 1) << "the filler and the word itself are none of them";
  EXPECT_GE(dropped, kLines - 8);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "error"), 1);
}

TEST_F(LineQueueTest, WhatIsKeptIsDroppedWhereNothingElseIsLeft) {
  LineQueue queue(pipe_[1], 20, DroppedLine);
  queue.Add(std::string(100, 'k') + "\n", true);
  queue.Add("short\n", true);
  EXPECT_TRUE(queue.Flush(Patience(absl::Seconds(20))));
  EXPECT_EQ(ReadUntil("short"), (std::vector<std::string>{"(1)", "short"}));
}

TEST_F(LineQueueTest, AReaderThatIsGoneHoldsUpNobody) {
  LineQueue queue(pipe_[1], 1000, DroppedLine);
  signal(SIGPIPE, SIG_IGN);
  close(pipe_[0]);
  pipe_[0] = -1;
  queue.Add("a\n", false);
  EXPECT_TRUE(queue.Flush(Patience(absl::Seconds(20))));
}

}  // namespace
}  // namespace motley
