#include "worker/daemon/line_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::worker {
namespace {

using ::testing::ElementsAre;

TEST(LineCutter, LinesComeWholeHoweverTheBytesCome) {
  LineCutter cutter(100);
  std::vector<std::string> lines;
  for (const char* bytes : {"fir", "st\n\nsec", "ond", "\nrest"}) cutter.Append(bytes, lines);
  EXPECT_THAT(lines, ElementsAre("first", "", "second"));
  cutter.End(lines);
  EXPECT_EQ(lines.back(), "rest");
  cutter.End(lines);
  EXPECT_EQ(lines.size(), 4u);
}

TEST(LineCutter, ALongLineIsCutWithAMark) {
  LineCutter cutter(8);
  std::vector<std::string> lines;
  for (int i = 0; i < 1000; ++i) cutter.Append("xxxx", lines);
  cutter.Append("\n12345678\n", lines);
  EXPECT_THAT(lines, ElementsAre("xxxxxxxx [... 3992 bytes cut]", "12345678"));
}

}  // namespace
}  // namespace motley::worker
