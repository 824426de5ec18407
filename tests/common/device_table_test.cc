#include "common/device_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using ::testing::HasSubstr;

TEST(DeviceTable, EveryCardHasNumbersAndASource) {
  for (const GpuSpec& gpu : GpuTable()) {
    EXPECT_GT(gpu.fp32_flops, 1e12) << gpu.name;
    EXPECT_LT(gpu.fp32_flops, 200e12) << gpu.name;
    EXPECT_GE(gpu.memory_bytes, int64_t{11} << 30) << gpu.name;
    EXPECT_GT(gpu.memory_bytes_per_second, 1e11) << gpu.name;
    EXPECT_GT(gpu.link_bytes_per_second, 1e10) << gpu.name;
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
    EXPECT_EQ(FindGpu(gpu.name)->name, gpu.name);
  }
}

// Reference: Cephalo table 3.
TEST(DeviceTable, CephaloTable3) {
  const std::pair<const char*, double> rows[] = {{"P40", 11.8}, {"P100", 9.3}, {"A6000", 38.7}, {"L4", 30.3},
                                                 {"V100", 14.1}, {"T4", 8.1}, {"A10G", 31.2}};
  for (const auto& [name, tflops] : rows) EXPECT_DOUBLE_EQ(FindGpu(name)->fp32_flops, tflops * 1e12) << name;
}

TEST(DeviceTable, NamesAreForgiving) {
  EXPECT_EQ(FindGpu("rtx 4090")->name, "RTX-4090");
  EXPECT_EQ(FindGpu("4090")->name, "RTX-4090");
  EXPECT_EQ(FindGpu("NVIDIA A100")->name, "A100-40GB");
  EXPECT_EQ(FindGpu("NVIDIA RTX A6000")->name, "A6000");
}

TEST(DeviceTable, UnknownNameSaysTheNearest) {
  const auto found = FindGpu("A600");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("did you mean 'A6000'?"));
}

TEST(DeviceTable, MissingUnitsAreSaid) {
  EXPECT_EQ(FindGpu("V100")->Flops("bf16").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FindGpu("V100")->Flops("fp8").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_DOUBLE_EQ(*FindGpu("A100")->Flops("bf16"), 312e12);
}

}  // namespace
}  // namespace motley
