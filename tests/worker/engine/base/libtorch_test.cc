#include "worker/engine/base/libtorch.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/build_info.h"
#include "tests/common/base/folders.h"
#include "worker/engine/device/cuda_libraries.h"

namespace motley::engine {
namespace {

using testing::HasSubstr;

TEST(LibtorchTest, TheOneThatWasLoadedIsTheOneOfTheHeadersAndOfTheProgramsVersion) {
  EXPECT_EQ(CheckLibtorch(), absl::OkStatus());
  EXPECT_EQ(LibtorchVersion(), absl::StrCat(TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR, ".", TORCH_VERSION_PATCH));
  EXPECT_THAT(BuildInfo("motley-rank"), HasSubstr("libtorch " + std::string(LibtorchVersion())));
}

TEST(LibtorchTest, AnotherOneIsRefusedByItsVersion) {
  const std::string own(LibtorchVersion());
  EXPECT_EQ(CheckLibtorch(own), absl::OkStatus());
  for (const std::string other : {"2.6.0", "2.7", "2.11", "2.11.01"}) {
    const absl::Status status = CheckLibtorch(other);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << other;
    EXPECT_THAT(status.message(), HasSubstr("compiled for libtorch " + own + " and found libtorch " + other + ":"));
  }
}

// What a rank does before it opens its card. PyTorch asks once whether it has CUDA: who asks before libtorch_cuda is there gets
// "no" for good. In a process of its own: in this one others may have asked.
TEST(LibtorchDeathTest, ACardsLibraryIsFoundAfterAllThatARankDoesBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        bool well = CheckLibtorch().ok();
        at::set_num_threads(1);
        PrepareTorchCuda();
        well &= OpenTorchCudaIn(BuildFolder() + "/fake_torch").ok();
        std::_Exit(well && at::hasCUDA() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace motley::engine
