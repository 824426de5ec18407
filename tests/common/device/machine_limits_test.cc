#include "common/device/machine_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace motley {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(MachineLimitsTest, ReadsTheMachine) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "verbs";
  std::filesystem::create_directories(folder / "mlx5_0");
  const MachineLimits limits = MachineLimitsHere("/", folder);
  EXPECT_GT(limits.shared_memory_bytes, 0);
  EXPECT_GT(limits.locked_memory_bytes, 0);
  EXPECT_TRUE(limits.has_verbs);
  const MachineLimits bare = MachineLimitsHere("/nowhere", "/nowhere");
  EXPECT_EQ(bare.shared_memory_bytes, 0);
  EXPECT_FALSE(bare.has_verbs);
}

TEST(MachineLimitsTest, SmallOnesAreSaid) {
  MachineLimits limits;
  EXPECT_THAT(SharedMemoryTooSmall(limits), IsEmpty());
  EXPECT_THAT(LockedMemoryTooSmall(limits), IsEmpty());
  limits.shared_memory_bytes = limits.locked_memory_bytes = 64 << 20;
  EXPECT_THAT(SharedMemoryTooSmall(limits), HasSubstr("64 MiB"));
  EXPECT_THAT(LockedMemoryTooSmall(limits), IsEmpty());  // nothing registers memory
  limits.has_verbs = true;
  EXPECT_THAT(LockedMemoryTooSmall(limits), HasSubstr("65536 KiB"));
}

}  // namespace
}  // namespace motley
