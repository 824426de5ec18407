#include "worker/engine/base/libtorch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include "absl/strings/str_cat.h"
#include "common/base/build_info.h"

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
  EXPECT_EQ(CheckLibtorch("PyTorch built with:\n  - Build settings: PERF_WITH_AVX=1, TORCH_VERSION=" + own + ", USE_CUDA=ON, \n"),
            absl::OkStatus());
  EXPECT_EQ(CheckLibtorch("Build settings: TORCH_VERSION=" + own), absl::OkStatus());
  for (const std::string other : {"2.6.0", "2.7", "2.11", "2.11.01"}) {
    const absl::Status status = CheckLibtorch("Build settings: PERF_WITH_AVX=1, TORCH_VERSION=" + other + ", USE_CUDA=ON");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << other;
    EXPECT_THAT(status.message(), HasSubstr("compiled for libtorch " + own + " and found libtorch " + other + ":"));
  }
  EXPECT_THAT(CheckLibtorch("no settings").message(), HasSubstr("of no known version"));
}

}  // namespace
}  // namespace motley::engine
