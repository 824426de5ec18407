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
    EXPECT_GE(gpu.link_bytes_per_second, gpu.pcie_bytes_per_second) << gpu.name;
    EXPECT_GT(gpu.pcie_bytes_per_second, 1e10) << gpu.name;
    EXPECT_EQ(gpu.bf16_flops > 0, gpu.tf32_flops > 0) << gpu.name;  // both came with Ampere
    if (gpu.bf16_flops > 0) {
      EXPECT_EQ(gpu.bf16_flops, gpu.fp16_flops) << gpu.name;
    }
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
    EXPECT_EQ(FindGpu(gpu.name)->name, gpu.name);
  }
}

// Reference: Cephalo table 3.
TEST(DeviceTable, CephaloTable3) {
  const std::pair<const char*, double> rows[] = {{"P40", 11.8},  {"P100", 9.3}, {"A6000", 38.7}, {"L4", 30.3},
                                                 {"V100", 14.1}, {"T4", 8.1},   {"A10G", 31.2}};
  for (const auto& [name, tflops] : rows) EXPECT_DOUBLE_EQ(FindGpu(name)->fp32_flops, tflops * 1e12) << name;
}

// Boards of one chip are cards of their own.
TEST(DeviceTable, SxmAndPcieBoards) {
  EXPECT_EQ(FindGpu("A100")->name, "A100-40GB");
  EXPECT_EQ(FindGpu("H100")->name, "H100-SXM");
  EXPECT_EQ(FindGpu("V100")->name, "V100-16GB");
  EXPECT_EQ(FindGpu("A100 PCIe 80GB")->name, "A100-PCIe-80GB");
  EXPECT_LT(FindGpu("A100-PCIe-80GB")->link_bytes_per_second, FindGpu("A100-80GB")->link_bytes_per_second);
  EXPECT_LT(FindGpu("A100-PCIe-80GB")->memory_bytes_per_second, FindGpu("A100-80GB")->memory_bytes_per_second);
  EXPECT_EQ(FindGpu("v100s")->name, "V100S-32GB");
  EXPECT_DOUBLE_EQ(FindGpu("A800")->link_bytes_per_second, 200e9);  // HexiScale section 5.1
}

// Every card that the documentation promises.
TEST(DeviceTable, PromisedCards) {
  for (const char* name : {"H200",           "H100-SXM",  "H100-PCIe", "H100-NVL", "A100-40GB", "A100-80GB",   "A100-PCIe-40GB",
                           "A100-PCIe-80GB", "A800",      "L40S",      "L4",       "A10G",      "A6000",       "A40",
                           "V100-16GB",      "V100-32GB", "T4",        "P100",     "P40",       "RTX 2080 Ti", "RTX 3080 Ti",
                           "RTX 3090",       "RTX 4090",  "RTX 5090",  "Titan RTX"}) {
    EXPECT_TRUE(FindGpu(name).ok()) << name;
  }
}

TEST(DeviceTable, NamesAreForgiving) {
  EXPECT_EQ(FindGpu("rtx 4090")->name, "RTX-4090");
  EXPECT_EQ(FindGpu("4090")->name, "RTX-4090");
  EXPECT_EQ(FindGpu("NVIDIA A100")->name, "A100-40GB");
  EXPECT_EQ(FindGpu("NVIDIA RTX A6000")->name, "A6000");
}

TEST(DeviceTable, BoardsAreFoundAsTheDriverNamesThem) {
  const std::pair<const char*, const char*> rows[] = {
      {"NVIDIA H200", "H200"},
      {"NVIDIA H100 80GB HBM3", "H100-SXM"},
      {"NVIDIA H100 PCIe", "H100-PCIe"},
      {"NVIDIA H100 NVL", "H100-NVL"},
      {"NVIDIA A100-SXM4-40GB", "A100-40GB"},
      {"A100-SXM4-80GB", "A100-80GB"},
      {"NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB"},
      {"NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"},
      {"NVIDIA A800-SXM4-80GB", "A800"},
      {"NVIDIA A800 80GB PCIe", "A800-PCIe"},
      {"NVIDIA A10G", "A10G"},
      {"NVIDIA L40S", "L40S"},
      {"Tesla V100-SXM2-16GB", "V100-16GB"},
      {"Tesla V100-SXM2-32GB", "V100-32GB"},
      {"Tesla V100-PCIE-32GB", "V100-PCIe-32GB"},
      {"Tesla V100S-PCIE-32GB", "V100S-32GB"},
      {"Tesla T4", "T4"},
      {"Tesla P100-PCIE-12GB", "P100"},
      {"Tesla P40", "P40"},
      {"NVIDIA GeForce RTX 2080 Ti", "RTX-2080-Ti"},
      {"NVIDIA GeForce RTX 4090", "RTX-4090"},
      {"NVIDIA TITAN RTX", "Titan-RTX"},
  };
  for (const auto& [driver, ours] : rows) {
    ASSERT_TRUE(FindGpu(driver).ok()) << driver;
    EXPECT_EQ(FindGpu(driver)->name, ours) << driver;
  }
  EXPECT_FALSE(FindGpu("Tesla P100-PCIE-16GB").ok());  // the table's has 12
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
