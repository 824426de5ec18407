#include "worker/engine/nccl/nccl_causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMebibyte = int64_t{1} << 20;

// Reference: NVIDIA/nccl issue 342, pytorch/ci-infra pull request 490.
TEST(NcclCausesTest, SmallSharedMemoryIsNamedWithItsSize) {
  MachineLimits container;
  container.shared_memory_bytes = 64 * kMebibyte;
  const char* const said = "Error while creating shared memory segment /dev/shm/nccl-WU88OE (size 9637888), error: No space left";
  EXPECT_THAT(LikelyCause(said, container), AllOf(HasSubstr("/dev/shm has 64 MiB"), HasSubstr("--shm-size=1g")));
  EXPECT_THAT(LikelyCause(said, {}), HasSubstr("/dev/shm is full"));
}

// Reference: NVIDIA/nccl-tests issue 206, NVIDIA/nccl issue 380.
TEST(NcclCausesTest, LittleLockedMemoryIsNamedWhereTheNetworkFailed) {
  MachineLimits by_hand;
  by_hand.locked_memory_bytes = 8 * kMebibyte;
  by_hand.has_verbs = true;
  for (const char* said : {"Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "Call to ibv_create_cq failed"}) {
    EXPECT_THAT(LikelyCause(said, by_hand), AllOf(HasSubstr("may lock 8192 KiB"), HasSubstr("LimitMEMLOCK=infinity")));
  }
}

TEST(NcclCausesTest, TheMachineIsSuspectedWhereNcclSaysLittle) {
  MachineLimits container;
  container.shared_memory_bytes = 64 * kMebibyte;
  EXPECT_THAT(LikelyCause("unhandled system error", container), HasSubstr("/dev/shm has 64 MiB"));
  EXPECT_THAT(LikelyCause("unhandled system error", {}), HasSubstr("NCCL_DEBUG=INFO"));
}

TEST(NcclCausesTest, WhatIsSaidPlainlyComesFirst) {
  MachineLimits container;
  container.shared_memory_bytes = 64 * kMebibyte;
  EXPECT_THAT(LikelyCause("Cuda failure 802 'system not yet initialized'", container), HasSubstr("fabric"));
  EXPECT_THAT(LikelyCause("Failed to open libnvidia-ml.so.1", container), HasSubstr("utility"));
  EXPECT_THAT(LikelyCause("Cuda failure 2 'out of memory'", container), HasSubstr("nvidia-smi"));
  EXPECT_THAT(LikelyCause("no kernel image is available for execution on the device", container), HasSubstr("older cards"));
}

}  // namespace
}  // namespace motley::engine
