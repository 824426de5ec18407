#include "common/base/clean_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "common/base/utf8.h"

namespace motley {
namespace {

TEST(CleanTextTest, GoodTextStaysAsItIs) {
  for (const char* text : {"", "plain", "C:\\temp\\new", "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"}) {
    EXPECT_EQ(CleanLine(text), text);
    EXPECT_EQ(CleanText(text), text);
  }
  EXPECT_EQ(CleanText("two\n\tlines"), "two\n\tlines");
}

TEST(CleanTextTest, WhatForgesLinesOrSteersATerminalIsSpelledOut) {
  EXPECT_EQ(CleanLine("/data\n2026 I motley: job succeeded"), "/data\\n2026 I motley: job succeeded");
  EXPECT_EQ(CleanLine("a\tb\rc"), "a\\u0009b\\u000dc");
  EXPECT_EQ(CleanText("\x1b[2J\x7f"), "\\u001b[2J\\u007f");
  EXPECT_EQ(CleanText(std::string("nul\0.", 5)), "nul\\u0000.");
  EXPECT_EQ(CleanText("\xc2\x9b"
                      "2J"),
            "\\u009b2J")
      << "the one-character form of an escape sequence";
  EXPECT_EQ(CleanText("\xe2\x80\xa8 \xe2\x80\xae \xe2\x81\xa6"), "\\u2028 \\u202e \\u2066");
  EXPECT_EQ(CleanText("\xe2\x80\x8e \xe2\x80\x8f \xd8\x9c"), "\\u200e \\u200f \\u061c");
}

// By Unicode's list of what may be shown as nothing: the first and the last of each range.
TEST(CleanTextTest, WhatIsNotSeenIsSpelledOut) {
  const std::pair<const char*, const char*> unseen[] = {{"\xc2\xad", "\\u00ad"},
                                                        {"\xcd\x8f", "\\u034f"},
                                                        {"\xe1\x85\x9f", "\\u115f"},
                                                        {"\xe1\x85\xa0", "\\u1160"},
                                                        {"\xe1\x9e\xb4", "\\u17b4"},
                                                        {"\xe1\x9e\xb5", "\\u17b5"},
                                                        {"\xe1\xa0\x8b", "\\u180b"},
                                                        {"\xe1\xa0\x8f", "\\u180f"},
                                                        {"\xe2\x80\x8b", "\\u200b"},
                                                        {"\xe2\x80\x8d", "\\u200d"},
                                                        {"\xe2\x81\xa0", "\\u2060"},
                                                        {"\xe2\x81\xaf", "\\u206f"},
                                                        {"\xe3\x85\xa4", "\\u3164"},
                                                        {"\xef\xb8\x80", "\\ufe00"},
                                                        {"\xef\xb8\x8f", "\\ufe0f"},
                                                        {"\xef\xbb\xbf", "\\ufeff"},
                                                        {"\xef\xbe\xa0", "\\uffa0"},
                                                        {"\xef\xbf\xb0", "\\ufff0"},
                                                        {"\xef\xbf\xbb", "\\ufffb"},
                                                        {"\xf0\x9b\xb2\xa0", "\\U0001bca0"},
                                                        {"\xf0\x9d\x85\xba", "\\U0001d17a"},
                                                        {"\xf3\xa0\x80\x80", "\\U000e0000"},
                                                        {"\xf3\xa0\xbf\xbf", "\\U000e0fff"}};
  for (const auto& [character, spelled] : unseen) {
    EXPECT_EQ(CleanLine(std::string("gpt") + character + "2"), std::string("gpt") + spelled + "2");
    EXPECT_EQ(CleanText(std::string("gpt") + character + "2"), std::string("gpt") + spelled + "2");
  }
  // Beside them: a letter, a blank that is seen, the character for what cannot be shown, a picture.
  for (const char* seen : {"\xc2\xae", "\xc2\xa0", "\xe2\x80\x90", "\xef\xbf\xbd", "\xf0\x9f\x9a\x80", "\xf3\xa1\x80\x80"}) {
    EXPECT_EQ(CleanLine(seen), seen);
  }
}

TEST(CleanTextTest, WrongBytesAreSpelledOutAndTheRestStays) {
  EXPECT_EQ(CleanLine("\xff"
                      "a\x80\xc3\xa4"),
            "\\xffa\\x80\xc3\xa4");
  EXPECT_EQ(CleanLine("abc\xe2\x82"), "abc\\xe2\\x82") << "cut off";
  EXPECT_EQ(CleanLine("\xe2\x82\xc3\xa4"), "\\xe2\\x82\xc3\xa4");
}

TEST(CleanTextTest, WhateverComesInValidTextGoesOutAndCleaningAgainChangesNothing) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 3 == 0 ? random() % 256 : 0xc0 + random() % 64);
    const std::string line = CleanLine(bytes);
    Utf8Checker checker;
    EXPECT_FALSE(checker.Feed(line) || checker.End()) << round;
    for (const char c : line) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << round;
    EXPECT_EQ(CleanLine(line), line);
    EXPECT_EQ(CleanText(bytes).find('\x1b'), std::string::npos);
  }
}

TEST(CleanTextTest, AnEchoIsCutBetweenCharactersAndSaysHowMuchThereWas) {
  EXPECT_EQ(Quoted("name\n"), "'name\\n'");
  EXPECT_EQ(Echo(std::string(kMostEchoedBytes, 'x')), std::string(kMostEchoedBytes, 'x'));
  EXPECT_EQ(Echo(std::string(400000, 'x')), std::string(kMostEchoedBytes, 'x') + "... (400000 bytes)");
  std::string euros(kMostEchoedBytes - 1, 'x');
  for (int i = 0; i < 10; ++i) euros += "\xe2\x82\xac";
  EXPECT_EQ(Echo(euros), std::string(kMostEchoedBytes - 1, 'x') + "... (229 bytes)");
}

}  // namespace
}  // namespace motley
