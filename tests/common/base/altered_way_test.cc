#include "common/base/altered_way.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(AlteredWay, IsFoundInTheWordsAroundIt) {
  const AlteredWay way = {"b/gpu0", "a/gpu1"};
  EXPECT_EQ(AlteredOnTheWay(way), "what b/gpu0 sent to a/gpu1 was altered on the way");
  EXPECT_EQ(SaysAltered(AlteredOnTheWay(way)), way);
  EXPECT_EQ(
      SaysAltered("a/gpu1, step 3: nobody knows what was sent to whom: lost b/gpu0: " + AlteredOnTheWay(way) + ": message 7"),
      way);
}

TEST(AlteredWay, OtherWordsSayNothing) {
  for (const char* words : {"", " was altered on the way", "a sent to b was altered on the way",
                            "what a sent b was altered on the way", "what b/gpu0 sent to a/gpu1"}) {
    EXPECT_FALSE(SaysAltered(words)) << words;
  }
}

}  // namespace
}  // namespace motley
