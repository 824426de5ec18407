#include "common/base/build_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/version.h"

namespace motley {
namespace {

TEST(BuildInfoTest, NamesWhatWasBuilt) {
  const std::string info = BuildInfo("motley-worker");
  EXPECT_THAT(info, testing::StartsWith(std::string("motley-worker ") + kVersion + ", commit "));
  EXPECT_THAT(info, testing::ContainsRegex(", commit ([0-9a-f]+(-dirty)?|unknown), protocol motley.v1, libtorch (none|[0-9]+)"));
}

}  // namespace
}  // namespace motley
