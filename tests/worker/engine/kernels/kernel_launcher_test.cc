#include "worker/engine/kernels/kernel_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/worker/engine/kernels/host_kernels.h"
#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "worker/engine/kernels/open_kernels.h"

namespace motley::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class KernelLauncherTest : public testing::Test {
 protected:
  void TearDown() override { unsetenv("MOTLEY_FAKE_CUDA"); }
  static void ExpectRefused(const absl::Status& status, const std::vector<std::string>& words) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    for (const std::string& part : words) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }

  alignas(16) float input_[16] = {1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 1, 2, 2, 2, 2};
  alignas(16) float output_[8] = {};
  const kernels::SwiGluForwardArguments arguments_ = {input_, output_, 2, 2};
};

TEST_F(KernelLauncherTest, LaunchesTheKernelOfTheArguments) {
  const auto launcher = LoadFakeKernels();
  ASSERT_TRUE(launcher.ok()) << launcher.status();
  EXPECT_EQ((*launcher)->image(), "sm_90");
  EXPECT_EQ((*launcher)->digest(), FakeKernelFile().digest);
  const long before = FakeLaunches();
  ASSERT_TRUE((*launcher)->Launch(DType::kFloat32, 1, arguments_).ok());
  EXPECT_EQ(FakeLaunches(), before + 1);
  EXPECT_FLOAT_EQ(output_[0], 0.7310586f);
  EXPECT_FLOAT_EQ(output_[7], 2 * 7.997317f);
}

TEST_F(KernelLauncherTest, AThreadWithoutAContextGetsTheCards) {
  const auto launcher = LoadFakeKernels();
  ASSERT_TRUE(launcher.ok()) << launcher.status();
  absl::Status there;
  std::thread lane([&] { there = (*launcher)->Launch(DType::kFloat32, 1, arguments_); });
  lane.join();
  EXPECT_TRUE(there.ok()) << there;
  EXPECT_FLOAT_EQ(output_[0], 0.7310586f);
}

TEST_F(KernelLauncherTest, EveryKernelIsLaunchedOnceWithNothingToDo) {
  const auto launcher = LoadFakeKernels();
  ASSERT_TRUE(launcher.ok()) << launcher.status();
  const long before = FakeLaunches();
  for (const DType type : {DType::kBFloat16, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    EXPECT_TRUE((*launcher)->LaunchEachOnce(type).ok());
  }
  EXPECT_EQ(FakeLaunches(), before + 3 * static_cast<long>(std::size(kernels::kKernels)));
}

TEST_F(KernelLauncherTest, WhatTheDriverRefusesIsNamed) {
  const auto launcher = LoadFakeKernels();
  ASSERT_TRUE(launcher.ok()) << launcher.status();
  kernels::SwiGluForwardArguments wrong = arguments_;
  wrong.input = input_ + 1;
  const absl::Status status = (*launcher)->Launch(DType::kFloat32, 1, wrong);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("launching swiglu_forward of float32: the NVIDIA driver says CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  EXPECT_THAT(std::string((*launcher)->Launch(DType::kFloat64, 1, arguments_).message()),
              HasSubstr("launching swiglu_forward of float64: there is none"));
}

TEST_F(KernelLauncherTest, AFileForOtherCardsIsRefused) {
  setenv("MOTLEY_FAKE_CUDA", "75 12090", 1);
  ExpectRefused(LoadFakeKernels(FakeKernelFile({60, 90})).status(),
                {"/there/motley-kernels", "has no code for sm_75, but for sm_60, sm_90", "`./run setup --gpu`"});
}

TEST_F(KernelLauncherTest, ADriverThatIsTooOldIsSaid) {
  KernelFile file = FakeKernelFile();
  file.images[0].code = "made later";
  setenv("MOTLEY_FAKE_CUDA", "90 11040", 1);
  ExpectRefused(LoadFakeKernels(file).status(),
                {"loading kernels of /there/motley-kernels: the NVIDIA driver says CUDA_ERROR_NO_BINARY_FOR_GPU",
                 "sm_90 by NVRTC 12.9 is not for a driver of CUDA 11.4; install a newer driver"});
}

TEST_F(KernelLauncherTest, AFileOfAnotherBuildIsRefused) {
  KernelFile file = FakeKernelFile();
  file.kernels[2].argument_bytes = 16;
  ExpectRefused(LoadFakeKernels(file).status(), {"is of another build: swiglu_forward takes 16 bytes of arguments there"});
}

TEST_F(KernelLauncherTest, AFunctionThatTheCodeLacksIsNamed) {
  KernelFile file = FakeKernelFile();
  file.kernels[1].symbol = "_Zelse";
  EXPECT_THAT(std::string(LoadFakeKernels(file).status().message()),
              AllOf(HasSubstr("looking for swiglu_forward of float16"), HasSubstr("CUDA_ERROR_NOT_FOUND")));
}

TEST_F(KernelLauncherTest, ADriverThatIsNotThereOrLacksAFunctionIsNamed) {
  ExpectRefused(OpenDriver("/nowhere/libcuda.so.1").status(), {"no NVIDIA driver: ", "/nowhere/libcuda.so.1"});
  ExpectRefused(OpenDriver(BuildFolder() + "/tests/libbare_cuda.so").status(),
                {"libbare_cuda.so lacks cuDriverGetVersion, cuGetErrorName", "cuLaunchKernel", "install a newer one"});
}

TEST_F(KernelLauncherTest, TheHostHasEveryKernelWithTheSameArguments) {
  for (const CompiledKernel& kernel : FakeKernelFile().kernels) {
    const kernels::HostKernel* const found = kernels::FindHostKernel(kernel.symbol);
    ASSERT_NE(found, nullptr) << kernel.symbol;
    EXPECT_EQ(found->argument_bytes, kernel.argument_bytes) << kernel.symbol;
  }
}

TEST_F(KernelLauncherTest, TheFileLiesBesideTheRankOrWhereTheUserSays) {
  EXPECT_EQ(KernelFilePath("", "/opt/motley/bin/motley-rank").value(), "/opt/motley/bin/motley-kernels");
  EXPECT_EQ(KernelFilePath("/else/file", "/opt/motley/bin/motley-rank").value(), "/else/file");
  ExpectRefused(KernelFilePath("off", "/opt/motley/bin/motley-rank").status(), {"MOTLEY_KERNELS is off"});
  const std::filesystem::path prefix = std::filesystem::path(testing::TempDir()) / "installed",
                              share = prefix / "share/motley/kernels";
  std::filesystem::create_directories(share);
  std::ofstream(share / "motley-rank-2.7.1") << "there";
  EXPECT_EQ(KernelFilePath("", prefix / "bin/motley-rank-2.7.1").value(), share / "motley-rank-2.7.1");
  EXPECT_EQ(KernelFilePath("", prefix / "bin/motley-rank").value(), prefix / "bin/motley-kernels");
}

TEST_F(KernelLauncherTest, AFileIsOpenedByItsPath) {
  KernelFile file = FakeKernelFile();
  const std::string path = testing::TempDir() + "/kernels-by-path";
  std::ofstream(path, std::ios::binary) << WrittenKernelFile(file);
  const KernelLauncher::Card card = {.ordinal = 0, .stream = [] { return nullptr; }};
  const auto opened = OpenKernels(path, FakeDriver(), card);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->digest(), file.digest);
  EXPECT_EQ(OpenKernels("/nowhere/kernels", FakeDriver(), card).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace motley::engine
