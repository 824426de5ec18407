#include "coordinator/state/ring.h"

#include <gtest/gtest.h>

#include <string>

namespace motley::coordinator {
namespace {

TEST(Ring, AReaderGoesOnAtItsCursorAndMissesOnlyWhatFellOut) {
  Ring<std::string> ring(2, 1000, 100);
  int64_t found = 0;
  EXPECT_EQ(ring.After(0, &found), nullptr);
  EXPECT_EQ(ring.Add("a", 1), 101);
  ring.Add("b", 1);
  EXPECT_EQ(*ring.After(101, &found), "b");
  EXPECT_EQ(found, 102);
  EXPECT_EQ(ring.After(102, &found), nullptr);
  ring.Add("c", 1);
  EXPECT_EQ(*ring.After(0, &found), "b");  // the oldest kept
  EXPECT_EQ(found, 102);
  EXPECT_EQ(ring.size(), 2u);
}

TEST(Ring, IsBoundedByBytesToo) {
  Ring<std::string> ring(100, 10, 0);
  int64_t found = 0;
  for (const char* text : {"aaaa", "bbbb", "cccc"}) ring.Add(text, 4);
  EXPECT_EQ(ring.size(), 2u);
  EXPECT_EQ(ring.bytes(), 8u);
  EXPECT_EQ(*ring.After(0, &found), "bbbb");
  EXPECT_EQ(found, 2);
  ring.Add(std::string(50, 'd'), 50);  // larger than all: it alone is kept
  EXPECT_EQ(ring.size(), 1u);
  EXPECT_EQ(*ring.After(0, &found), std::string(50, 'd'));
  ring.Add("e", 1);
  EXPECT_EQ(ring.bytes(), 1u);
}

}  // namespace
}  // namespace motley::coordinator
