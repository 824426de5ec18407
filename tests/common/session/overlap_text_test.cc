#include "common/session/overlap_text.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(OverlapText, IsSaidForTheCardThatItCostsMost) {
  EXPECT_EQ(OverlapText({}), "");
  EXPECT_EQ(OverlapText({{1.25, 1}, {1, 1.5}}),
            "compute takes up to 1.25 times as long beside collectives, collectives 1.5 times beside compute");
}

}  // namespace
}  // namespace motley
