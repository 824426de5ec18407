#include "coordinator/client/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace motley::client {
namespace {

std::string Text(const Table& table, const Screen& screen = {}) {
  std::ostringstream out;
  table.Print(out, screen);
  return out.str();
}

TEST(TableTest, AlignsAndNothingSteersTheTerminal) {
  Table table({"A", "LONGER"});
  table.Add({"wide cell", "\x1b[2J"});
  table.Add({"x", ""});
  table.Add({"y\nA", "\xff"});
  EXPECT_EQ(Text(table), "A          LONGER\nwide cell  \\u001b[2J\nx\ny\\nA       \\xff\n");
}

TEST(TableTest, ANarrowScreenLosesSpareColumnsThenTheEndOfWideCells) {
  Table table({"JOB", "NAME", "STATE", "REASON"});
  table.Add({"job-with-a-name", "name", "running", "a long sentence that says why"});
  table.Spare({"NAME"});
  EXPECT_EQ(Text(table, {.width = 64}),
            "JOB              NAME  STATE    REASON\njob-with-a-name  name  running  a long sentence that says why\n");
  EXPECT_EQ(Text(table, {.width = 52}),
            "JOB              NAME  STATE    REASON\njob-with-a-name  name  running  a long sentence t...\n");
  EXPECT_EQ(Text(table, {.width = 42}), "JOB              STATE    REASON\njob-with-a-name  running  a long senten...\n");
  EXPECT_EQ(Text(table, {.width = 40}), "JOB              STATE    REASON\njob-with-a-name  running  a long sent...\n");
}

TEST(TableTest, StatesHaveColoursThatTakeNoRoom) {
  Table table({"JOB", "STATE", "STEP"});
  table.Add({"a", "failed", "1"});
  EXPECT_EQ(Text(table, {.width = 80, .colour = true}), "JOB  STATE   STEP\na    \x1b[31mfailed\x1b[0m  1\n");
}

}  // namespace
}  // namespace motley::client
