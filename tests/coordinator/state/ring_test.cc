#include "coordinator/state/ring.h"

#include <gtest/gtest.h>

#include <string>

namespace motley::coordinator {
namespace {

TEST(Ring, AReaderGoesOnAtItsCursorAndMissesOnlyWhatFellOut) {
  Ring<std::string> ring(2, 100);
  int64_t found = 0;
  EXPECT_EQ(ring.After(0, &found), nullptr);
  EXPECT_EQ(ring.Add("a"), 101);
  ring.Add("b");
  EXPECT_EQ(*ring.After(101, &found), "b");
  EXPECT_EQ(found, 102);
  EXPECT_EQ(ring.After(102, &found), nullptr);
  ring.Add("c");
  EXPECT_EQ(*ring.After(0, &found), "b");  // the oldest kept
  EXPECT_EQ(found, 102);
  EXPECT_EQ(ring.size(), 2u);
}

}  // namespace
}  // namespace motley::coordinator
