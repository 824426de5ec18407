#include "common/base/nearest.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

const std::vector<std::string> kKnown = {"training", "optimizer", "data", "date"};

TEST(NearestWordTest, FindsTypingErrors) {
  EXPECT_EQ(NearestWord("trainig", kKnown), "training");
  EXPECT_EQ(NearestWord("optimiser", kKnown), "optimizer");
  EXPECT_EQ(NearestWord("OPTIMIZER", kKnown), "optimizer");
  EXPECT_EQ(NearestWord("--wiat", {"--wide", "--wait"}), "--wait") << "two neighbours exchanged are one error";
}

TEST(NearestWordTest, TiesGoToTheLongestBeginningThenToTheFirst) {
  EXPECT_EQ(NearestWord("A600", {"A800", "A6000"}), "A6000");
  EXPECT_EQ(NearestWord("dat", kKnown), "data");
}

TEST(NearestWordTest, FarWordsAreNotSuggested) {
  EXPECT_EQ(NearestWord("zzzz", kKnown), "");
  EXPECT_EQ(NearestWord("", kKnown), "");
  EXPECT_EQ(NearestWord(std::string(100000, 'a'), kKnown), "");
  EXPECT_EQ(NearestWord("data", {}), "");
}

}  // namespace
}  // namespace motley
