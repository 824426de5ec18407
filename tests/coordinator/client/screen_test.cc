#include "coordinator/client/screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>

namespace motley::client {
namespace {

TEST(ScreenTest, WhatIsNoTerminalHasNoLimitsAndNoColours) {
  const int file = open("/dev/null", O_WRONLY);
  const Screen screen = FindScreen(file);
  close(file);
  EXPECT_EQ(screen.width, 0u);
  EXPECT_FALSE(screen.live || screen.colour);
  EXPECT_EQ(Painted(screen, "failed", "failed"), "failed");
}

TEST(ScreenTest, ATerminalHasItsWidthAndColoursUnlessSomebodyMinds) {
  int leader = 0, terminal = 0;
  winsize size{24, 100, 0, 0};
  ASSERT_EQ(openpty(&leader, &terminal, nullptr, nullptr, &size), 0);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  Screen screen = FindScreen(terminal);
  EXPECT_EQ(screen.width, 100u);
  EXPECT_TRUE(screen.live && screen.colour);
  EXPECT_EQ(Painted(screen, "failed", "text"), "\x1b[31mtext\x1b[0m");
  EXPECT_EQ(Painted(screen, "no state", "text"), "text");
  setenv("NO_COLOR", "1", 1);
  screen = FindScreen(terminal);
  EXPECT_TRUE(screen.live && !screen.colour);
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  screen = FindScreen(terminal);
  EXPECT_FALSE(screen.live || screen.colour);
  close(terminal);
  close(leader);
}

TEST(ScreenTest, CutsByCodePoints) {
  EXPECT_EQ(Cut("short", 5), "short");
  EXPECT_EQ(Cut("longer text", 8), "longe...");
  EXPECT_EQ(Columns("\xc3\xa4\xc3\xb6"), 2u);
  EXPECT_EQ(Cut("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xc3\xa4", 4), "\xc3\xa4...");
}

TEST(ScreenTest, FoldsAtSpacesAndKeepsWordsWhole) {
  EXPECT_EQ(Fold("one two three\n  four five six\n", 0, 2), "one two three\n  four five six\n");
  EXPECT_EQ(Fold("one two three\n  four five six\n", 8, 2), "one two\n  three\n  four\n    five\n    six\n");
  EXPECT_EQ(Fold("a /very/long/path b", 8, 2), "a\n  /very/long/path\n  b");
  EXPECT_EQ(Fold("exactly8", 8, 2), "exactly8");
}

}  // namespace
}  // namespace motley::client
