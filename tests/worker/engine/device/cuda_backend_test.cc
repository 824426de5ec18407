// What of a card's back end runs without a card: everything up to the first kernel refuses by name.
#include "worker/engine/device/cuda_backend.h"

#include <ATen/Context.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/worker/engine/fake_host.h"
#include "worker/engine/device/cuda_libraries.h"
#include "worker/engine/device/cuda_status.h"
#include "worker/engine/engine.h"

namespace motley::engine {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

bool HasDriver() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
}

// CUDA looks for the cards once, and other tests show this process those that are there.
template <typename Body>
void InAProcessOfItsOwn(Body body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        body();
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

DeviceDescription Card() {
  DeviceDescription card;
  card.id = DeviceId("n1/gpu0");
  card.kind = DeviceKind::kCuda;
  card.card.uuid = "GPU-00000000-0000-0000-0000-000000000000";  // nobody's
  return card;
}

TEST(CudaBackendDeathTest, ACardThatIsNotThereIsRefusedWithTheReason) {
  InAProcessOfItsOwn([] {
    const auto backend = OpenBackend(Card(), "127.0.0.1");
    ASSERT_EQ(backend.status().code(), absl::StatusCode::kFailedPrecondition) << backend.status();
    EXPECT_THAT(backend.status().message(), HasSubstr(HasDriver() ? "is not visible to this process" : "no NVIDIA driver"));
    // The process sees no other card either.
    EXPECT_EQ(std::string(std::getenv("CUDA_VISIBLE_DEVICES")), Card().card.uuid);
  });
}

TEST(CudaBackendDeathTest, ARankOnSuchACardSaysSo) {
  InAProcessOfItsOwn([] {
    FakeKv kv;
    FakeHost host(kv);
    RankAssignment assignment;
    assignment.device = Card();
    assignment.devices = {assignment.device.id};
    assignment.data_addresses = {"127.0.0.1"};
    const auto engine = CreateEngine(host, {});
    for (const absl::Status& status : {engine->Run(assignment).status(), engine->ProfileCompute(assignment).status(),
                                       engine->ProfileCollectives(assignment).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(status.message(), HasSubstr("card"));
    }
  });
}

TEST(CudaLibrariesTest, WhatIsMissingIsNamedWithItsRemedy) {
  const absl::Status status = OpenTorchCudaIn("/nowhere");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("/nowhere/libtorch_cuda.so"), HasSubstr("./run setup --gpu")));
}

TEST(CudaLibrariesTest, MemoryGrowsUnlessTheUserSaysOtherwiseAndSumsAreWhole) {
  const char* const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
  const auto said = [&] {
    std::vector<std::string> values;
    for (const char* name : names) {
      if (const char* value = std::getenv(name)) values.push_back(value);
    }
    return values;
  };
  const auto forget = [&] {
    for (const char* name : names) unsetenv(name);
  };
  forget();
  PrepareTorchCuda();
  EXPECT_THAT(said(), ElementsAre("expandable_segments:True"));
  for (const char* name : names) {
    forget();
    setenv(name, "max_split_size_mb:64", 1);
    PrepareTorchCuda();
    EXPECT_THAT(said(), ElementsAre("max_split_size_mb:64"));
  }
  forget();
  at::Context& context = at::globalContext();
  const auto bfloat16 = context.allowBF16ReductionCuBLAS(), float16 = context.allowFP16ReductionCuBLAS();
  context.setAllowBF16ReductionCuBLAS(true);
  context.setAllowFP16ReductionCuBLAS(true);
  EXPECT_NE(context.allowBF16ReductionCuBLAS(), bfloat16);
  EXPECT_NE(context.allowFP16ReductionCuBLAS(), float16);
  PrepareTorchCuda();
  EXPECT_EQ(context.allowBF16ReductionCuBLAS(), bfloat16);
}

TEST(CudaLibrariesTest, NcclIsTakenFromWhereTheUserSays) {
  ASSERT_EQ(setenv("MOTLEY_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1), 0);
  const absl::Status status = OpenTorchsNccl().status();
  ASSERT_EQ(unsetenv("MOTLEY_NCCL_LIBRARY"), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/libnccl.so.2"));
}

TEST(CudaStatusTest, SaysWhatMendsIt) {
  EXPECT_EQ(CudaStatus("a copy", cudaSuccess), absl::OkStatus());
  const absl::Status full = CudaStatus("a copy", cudaErrorMemoryAllocation);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), AllOf(HasSubstr("a copy: "), HasSubstr("cudaErrorMemoryAllocation")));
  const absl::Status old_card = CudaStatus("a first kernel", cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(old_card.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(old_card.message(), HasSubstr("--libtorch 2.7.1"));
  EXPECT_THAT(CudaStatus("x", cudaErrorInsufficientDriver).message(), HasSubstr("install a newer driver"));
  EXPECT_THAT(CudaStatus("x", cudaErrorDevicesUnavailable).message(), HasSubstr("exclusive"));
  EXPECT_EQ(CudaStatus("x", cudaErrorIllegalAddress).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace motley::engine
