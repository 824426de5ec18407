#include "common/device/rank_builds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kNewest = {"2.11.0"}, kBoth = {"2.11.0", "2.7.1"}, kOld = {"2.7.1"};

std::string Chosen(int capability, int cuda, const std::vector<std::string>& present) {
  const auto build = ChooseRankBuild(capability, cuda, "535.129.03", present);
  return build.ok() ? std::string(build->libtorch) : std::string(build.status().message());
}

TEST(RankBuilds, ACardGetsTheNewestBuildThatHasItsKernels) {
  EXPECT_EQ(Chosen(86, 13000, kBoth), "2.11.0");
  EXPECT_EQ(Chosen(89, 13000, kNewest), "2.11.0") << "kernels of sm_86 run on it";
  EXPECT_EQ(Chosen(103, 13010, kBoth), "2.11.0");
  EXPECT_EQ(Chosen(70, 13000, kBoth), "2.7.1") << "a V100";
  EXPECT_EQ(Chosen(61, 12020, kBoth), "2.7.1") << "a P40; drivers of CUDA 12.2 run builds of 12.6";
  EXPECT_EQ(Chosen(86, 12020, kBoth), "2.7.1") << "the driver is too old for the newest";
  EXPECT_EQ(Chosen(80, 13000, kOld), "2.7.1");
}

TEST(RankBuilds, WhatIsMissingIsSaidWithTheRemedy) {
  EXPECT_EQ(Chosen(61, 13000, kNewest),
            "no motley-rank at hand has kernels for sm_61; make one that has them: ./run setup --libtorch 2.7.1 (packages: "
            "docs/use/lab-cards.md)");
  EXPECT_EQ(Chosen(120, 13000, kOld), "no motley-rank at hand has kernels for sm_120; make one that has them: ./run build");
  EXPECT_THAT(Chosen(37, 13000, kBoth), HasSubstr("no build of motley-rank has kernels for sm_37 (2.11.0: sm_75, sm_80"));
  EXPECT_EQ(Chosen(86, 12020, kNewest),
            "driver 535.129.03 runs CUDA 12.2, and motley-rank of libtorch 2.11.0 needs 13.0: install a driver of branch 580 or "
            "newer, or ./run setup --libtorch 2.7.1 (packages: docs/use/lab-cards.md)");
  EXPECT_EQ(Chosen(120, 12080, kBoth),
            "driver 535.129.03 runs CUDA 12.8, and motley-rank of libtorch 2.11.0 needs 13.0: install a driver of branch 580 or "
            "newer");
  EXPECT_THAT(Chosen(61, 11080, kBoth), HasSubstr("libtorch 2.7.1 needs 12.6: install a driver of branch 525 or newer"));
}

TEST(RankBuilds, TheTableIsInOrder) {
  int newer = 1 << 30;
  for (const RankBuild& build : RankBuilds()) {
    EXPECT_LT(build.cuda, newer);
    newer = build.cuda;
    EXPECT_TRUE(std::is_sorted(build.architectures.begin(), build.architectures.end()));
  }
  EXPECT_EQ(RankBinaryName(RankBuilds()[0]), "motley-rank");
  EXPECT_EQ(RankBinaryName(RankBuilds()[1]), "motley-rank-2.7.1");
  EXPECT_EQ(CudaVersion(12060), "12.6");
}

}  // namespace
}  // namespace motley
