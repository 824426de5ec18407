#include "common/base/some_names.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(SomeNames, LongListsAreCut) {
  EXPECT_EQ(SomeNames({}), "");
  EXPECT_EQ(SomeNames({"a", "b", "c", "d"}), "a, b, c, d");
  EXPECT_EQ(SomeNames({"a", "b", "c", "d", "e", "f"}), "a, b, c, d and 2 more");
  EXPECT_EQ(SomeNames({"a", "b", "c"}, 2), "a, b and 1 more");
}

}  // namespace
}  // namespace motley
