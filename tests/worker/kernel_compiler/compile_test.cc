#include "worker/kernel_compiler/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/common/base/folders.h"

namespace motley::kernel_compiler {
namespace {

using testing::HasSubstr;

class CompileTest : public testing::Test {
 protected:
  CompileTest() { setenv("MOTLEY_FAKE_NVRTC", "60 90 120", 1); }
  static NvrtcLibrary Fake() { return OpenNvrtc(BuildFolder() + "/tests/libfake_nvrtc.so").value(); }
  // Sources of one header.
  static std::string SourcesOf(const std::string& text) {
    const std::filesystem::path root =
        std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(root / "worker/engine/kernels");
    std::ofstream(root / "worker/engine/kernels/gated.h") << text;
    return root;
  }
};

TEST_F(CompileTest, EveryKernelForEveryTarget) {
  const auto compiled = CompileKernels(Fake(), SourceFolder(), {{60}, {90}, {120, true}});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->left_out, std::vector<std::string>());
  EXPECT_EQ(compiled->faults, std::vector<std::string>());
  EXPECT_EQ(compiled->file.compiler, "NVRTC 12.3");
  ASSERT_EQ(compiled->file.images.size(), 3u);
  EXPECT_EQ(compiled->file.images[1].code, "sm_90");
  EXPECT_EQ(compiled->file.images[2].code, "compute_120");
  EXPECT_TRUE(engine::CheckKernelsOfThisBuild(compiled->file, "here").ok());
}

TEST_F(CompileTest, ATargetThatNvrtcDoesNotKnowIsNamedAndTheOthersAreMade) {
  const auto compiled = CompileKernels(Fake(), SourceFolder(), AllTargets());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->file.images.size(), 4u);
  EXPECT_THAT(compiled->left_out, testing::ElementsAre("sm_70: NVRTC 12.3 does not know it", testing::_, testing::_, testing::_,
                                                       "sm_100: NVRTC 12.3 does not know it"));
}

TEST_F(CompileTest, NothingToCompileForIsRefused) {
  const auto compiled = CompileKernels(Fake(), SourceFolder(), {{75}});
  EXPECT_EQ(compiled.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(compiled.status().message()), HasSubstr("sm_75: NVRTC 12.3 does not know it"));
}

TEST_F(CompileTest, WhatDoesNotCompileHasTheCompilersWords) {
  const auto compiled = CompileKernels(Fake(), SourcesOf("planted error"), {{60}});
  EXPECT_EQ(compiled.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(compiled.status().message()),
              HasSubstr("sm_60: kernels do not compile (NVRTC_ERROR_COMPILATION): gated.h(1): error"));
}

TEST_F(CompileTest, AKernelThatSpillsIsAFault) {
  const auto compiled = CompileKernels(Fake(), SourcesOf("planted spills"), {{60}});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_THAT(compiled->faults, testing::ElementsAre(HasSubstr("has 24 bytes of stack"), HasSubstr("spills 8 bytes")));
}

TEST_F(CompileTest, SourcesThatAreNotThereAreNamed) {
  EXPECT_THAT(std::string(CompileKernels(Fake(), "/nowhere", {{60}}).status().message()),
              HasSubstr("no kernels' sources in /nowhere/worker/engine/kernels"));
}

TEST_F(CompileTest, AnNvrtcThatIsNotThereOrLacksFunctionsIsNamedWithItsPackages) {
  for (const auto& [path, words] :
       {std::pair{"/nowhere/libnvrtc.so.12", "/nowhere/libnvrtc.so.12"}, {"libm.so.6", "libm.so.6 lacks nvrtcVersion"}}) {
    const auto opened = OpenNvrtc(path);
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(opened.status().message()), testing::AllOf(HasSubstr(words), HasSubstr("nvidia-cuda-nvrtc-cu12")));
  }
}

TEST_F(CompileTest, TargetsAreRead) {
  const auto targets = ParseTargets("90,120+");
  ASSERT_TRUE(targets.ok());
  ASSERT_EQ(targets->size(), 2u);
  EXPECT_EQ((*targets)[0].capability, 90);
  EXPECT_FALSE((*targets)[0].is_ptx);
  EXPECT_EQ((*targets)[1].capability, 120);
  EXPECT_TRUE((*targets)[1].is_ptx);
  for (const char* wrong : {"", "90,", "sm_90", "9", "+"}) {
    EXPECT_EQ(ParseTargets(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace motley::kernel_compiler
