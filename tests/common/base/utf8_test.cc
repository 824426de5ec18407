#include "common/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace motley {
namespace {

// Offset of what is wrong, -1 when nothing is; fed byte by byte and at once, which must agree.
int64_t Wrong(const std::string& text) {
  Utf8Checker whole, pieces;
  std::optional<int64_t> at_once = whole.Feed(text), by_byte;
  if (!at_once) at_once = whole.End();
  for (size_t i = 0; i < text.size() && !by_byte; ++i) by_byte = pieces.Feed(text.substr(i, 1));
  if (!by_byte) by_byte = pieces.End();
  EXPECT_EQ(at_once, by_byte) << text;
  return at_once.value_or(-1);
}

TEST(Utf8Test, AcceptsEveryLengthAndTheLimits) {
  for (const char* text : {"", "plain", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"}) {
    EXPECT_EQ(Wrong(text), -1) << text;
  }
}

TEST(Utf8Test, RefusesAndSaysWhere) {
  EXPECT_EQ(Wrong("ab\x80"), 2);            // continuation without a beginning
  EXPECT_EQ(Wrong("\xc0\xaf"), 0);          // overlong
  EXPECT_EQ(Wrong("a\xe0\x9f\x80"), 1);     // overlong
  EXPECT_EQ(Wrong("\xf0\x8f\x80\x80"), 0);  // overlong
  EXPECT_EQ(Wrong("\xed\xa0\x80"), 0);      // surrogate
  EXPECT_EQ(Wrong("\xf4\x90\x80\x80"), 0);  // above the last code point
  EXPECT_EQ(Wrong("\xf5"), 0);
  EXPECT_EQ(Wrong("abc\xe2\x82"), 3);  // cut off
  EXPECT_EQ(Wrong("\xe2\x82 x"), 0);
}

}  // namespace
}  // namespace motley
