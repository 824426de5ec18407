#include "common/base/memory_shortage.h"

#include <gtest/gtest.h>

#include "common/base/fault.h"

namespace motley {
namespace {

TEST(MemoryShortageTest, IsKeptByTheStatus) {
  const MemoryShortage shortage = {MemoryTier::kHost, int64_t{7} << 30, 1, 5'000'000'000, "step 3, instruction 17 (forward)"};
  const absl::Status status = WithMemoryShortage(absl::ResourceExhaustedError("full"), shortage);
  EXPECT_EQ(FaultOf(status), Fault::kMemory);
  EXPECT_EQ(status.message(), "full");
  EXPECT_EQ(MemoryShortageOf(status), shortage);
  EXPECT_EQ(MemoryShortageOf(WithMemoryShortage(status, {})), MemoryShortage()) << "what is known later takes its place";
}

TEST(MemoryShortageTest, OtherErrorsHaveNone) {
  EXPECT_EQ(MemoryShortageOf(absl::ResourceExhaustedError("a full disk")), std::nullopt);
  EXPECT_EQ(MemoryShortageOf(WithFault(absl::ResourceExhaustedError("full"), Fault::kMemory)), std::nullopt);
  EXPECT_TRUE(WithMemoryShortage(absl::OkStatus(), {}).ok());
}

}  // namespace
}  // namespace motley
