#include "common/base/cut_text.h"

#include <gtest/gtest.h>

#include "common/base/clean_text.h"

namespace motley {
namespace {

TEST(CutText, KeepsWhatFitsAndSaysHowMuchIsMissing) {
  EXPECT_EQ(CutText("short", 100), "short");
  EXPECT_EQ(CutText(std::string(100, 'a'), 100), std::string(100, 'a'));
  const std::string cut = CutText(std::string(1000, 'a'), 100);
  EXPECT_LE(cut.size(), 100u);
  EXPECT_EQ(cut, std::string(52, 'a') + "... (and 948 bytes more)");
}

TEST(CutText, NeverCutsACharacter) {
  for (const std::string character : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
    std::string text;
    while (text.size() < 1000) text += character;
    for (size_t limit = 60; limit < 70; ++limit) {
      const std::string cut = CutText(text, limit);
      EXPECT_LE(cut.size(), limit);
      EXPECT_EQ(CleanText(cut), cut);
    }
  }
}

}  // namespace
}  // namespace motley
