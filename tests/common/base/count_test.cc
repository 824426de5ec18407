#include "common/base/count.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(CountTest, OneAndMany) {
  EXPECT_EQ(Count(1, "device"), "1 device");
  EXPECT_EQ(Count(size_t{0}, "device"), "0 devices");
  EXPECT_EQ(Count(2, "microbatch", "microbatches"), "2 microbatches");
  EXPECT_EQ(Count(1, "node is", "nodes are"), "1 node is");
}

}  // namespace
}  // namespace motley
