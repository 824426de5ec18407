#include "common/device/device_table.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(DeviceTable, EveryCardHasNumbersAndASource) {
  for (const GpuSpec& gpu : GpuTable()) {
    EXPECT_GT(gpu.fp32_flops, 1e12) << gpu.name;
    EXPECT_LT(gpu.fp32_flops, 200e12) << gpu.name;
    EXPECT_GE(gpu.memory_bytes, int64_t{4} << 30) << gpu.name;
    EXPECT_LE(gpu.memory_bytes, int64_t{192} << 30) << gpu.name;
    EXPECT_GT(gpu.memory_bytes_per_second, 1e11) << gpu.name;
    EXPECT_LE(gpu.memory_bytes_per_second, 8e12) << gpu.name;
    EXPECT_GT(gpu.link_bytes_per_second, 1e10) << gpu.name;
    EXPECT_LE(gpu.link_bytes_per_second, 900e9) << gpu.name;
    EXPECT_GE(gpu.link_bytes_per_second, gpu.pcie_bytes_per_second) << gpu.name;
    EXPECT_GT(gpu.pcie_bytes_per_second, 1e10) << gpu.name;
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
    EXPECT_EQ(FindGpu(gpu.name)->name, gpu.name);
  }
}

// Reference: the makers' data sheets, and what their drivers show.
TEST(DeviceTable, CardsOfModestLabs) {
  EXPECT_DOUBLE_EQ(FindGpu("Tesla P100-SXM2-16GB")->fp16_flops, 21.2e12);
  EXPECT_DOUBLE_EQ(FindGpu("Tesla P100-SXM2-16GB")->link_bytes_per_second, 160e9 / 2);
  EXPECT_EQ(FindGpu("Tesla P100-PCIE-16GB")->memory_bytes, int64_t{16} << 30);
  EXPECT_DOUBLE_EQ(2 * FindGpu("K80")->fp32_flops, 8.74e12);
  EXPECT_EQ(FindGpu("K80")->memory_bytes >> 30, 11);
  EXPECT_EQ(FindGpu("Tesla M40 24GB")->memory_bytes >> 20, 23040);
  EXPECT_NEAR(FindGpu("3060 Ti")->fp32_flops, 4864 * 2 * 1.665e9, 0.05e12);
  EXPECT_NEAR(FindGpu("3070 Ti")->fp32_flops, 6144 * 2 * 1.77e9, 0.1e12);
  EXPECT_NEAR(FindGpu("4060")->fp32_flops, 3072 * 2 * 2.46e9, 0.05e12);
  EXPECT_NEAR(FindGpu("4070")->fp16_flops, 184 * 128 * 2.475e9, 0.05e12);
  EXPECT_NEAR(FindGpu("4080 SUPER")->fp16_flops, 320 * 128 * 2.55e9, 0.1e12);
  EXPECT_NEAR(FindGpu("5070 Ti")->fp16_flops, 280 * 128 * 2.452e9, 0.1e12);
  EXPECT_NEAR(FindGpu("2080")->fp16_flops, 368 * 64 * 1.71e9, 0.1e12);
  EXPECT_NEAR(FindGpu("2070")->fp16_flops, 288 * 64 * 1.62e9, 0.1e12);
  EXPECT_DOUBLE_EQ(FindGpu("RTX A2000")->fp16_flops, 63.9e12 / 2);
  EXPECT_DOUBLE_EQ(FindGpu("RTX 2000 Ada")->fp16_flops, 191.92e12 / 4);
  EXPECT_DOUBLE_EQ(FindGpu("H20")->bf16_flops, 148e12);
  EXPECT_DOUBLE_EQ(FindGpu("H800")->bf16_flops, FindGpu("H100")->bf16_flops);
  EXPECT_EQ(FindGpu("Titan Xp")->Flops("fp16").status().code(), absl::StatusCode::kFailedPrecondition);
}

// A sparse rate that was not halved, or a column that slipped, breaks one of these.
TEST(DeviceTable, RatesAreInProportion) {
  for (const GpuSpec& gpu : GpuTable()) {
    const bool amd = gpu.name.starts_with("MI");
    if (!amd) {
      EXPECT_EQ(gpu.bf16_flops > 0, gpu.tf32_flops > 0) << gpu.name;  // both came with Ampere
    }
    if (gpu.bf16_flops > 0) {
      EXPECT_EQ(gpu.bf16_flops, gpu.fp16_flops) << gpu.name;
    }
    if (gpu.fp16_flops > 0) {
      EXPECT_GE(gpu.fp16_flops, 1.9 * gpu.fp32_flops) << gpu.name;
      EXPECT_LE(gpu.fp16_flops, 30 * gpu.fp32_flops) << gpu.name;
    }
    // Tensor cores multiply halves at twice the rate of tf32, on every card.
    if (gpu.tf32_flops > 0) {
      EXPECT_GE(gpu.tf32_flops, 0.99 * gpu.fp32_flops) << gpu.name;
      EXPECT_NEAR(gpu.fp16_flops / gpu.tf32_flops, 2, 0.05) << gpu.name;
    }
    // How long a card reads its whole memory: from 14 ms (RTX 3080) to 86 ms (L4).
    const double seconds = static_cast<double>(gpu.memory_bytes) / gpu.memory_bytes_per_second;
    EXPECT_GT(seconds, 0.012) << gpu.name;
    EXPECT_LT(seconds, 0.1) << gpu.name;
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

// Reference: the makers' data sheets, sparse rates halved.
TEST(DeviceTable, DataSheets) {
  EXPECT_DOUBLE_EQ(FindGpu("RTX A4000")->fp16_flops, 153.4e12 / 2);
  EXPECT_DOUBLE_EQ(FindGpu("RTX A4500")->fp16_flops, 189.2e12 / 2);
  EXPECT_DOUBLE_EQ(FindGpu("RTX A5000")->fp16_flops, 222.2e12 / 2);
  EXPECT_DOUBLE_EQ(FindGpu("RTX 4500 Ada")->fp16_flops, 634e12 / 4);
  EXPECT_DOUBLE_EQ(FindGpu("RTX 5000 Ada")->fp16_flops, 1044.4e12 / 4);
  EXPECT_DOUBLE_EQ(FindGpu("RTX 6000 Ada")->fp16_flops, 1457e12 / 4);
  EXPECT_DOUBLE_EQ(FindGpu("Quadro RTX 8000")->fp16_flops, 130.5e12);
  EXPECT_DOUBLE_EQ(FindGpu("RTX 3070")->fp16_flops, 40.6e12);
  EXPECT_DOUBLE_EQ(FindGpu("Titan V")->fp16_flops, 110e12);
  EXPECT_NEAR(FindGpu("3090 Ti")->fp32_flops, 10752 * 2 * 1.86e9, 0.01e12);
  EXPECT_NEAR(FindGpu("1080")->fp32_flops, 2560 * 2 * 1.733e9, 0.05e12);
  EXPECT_DOUBLE_EQ(FindGpu("B200")->fp16_flops, 4.5e15 / 2);
  EXPECT_DOUBLE_EQ(FindGpu("B200")->link_bytes_per_second, 1.8e12 / 2);
  EXPECT_DOUBLE_EQ(2 * FindGpu("MI250")->fp16_flops, 362.1e12);
  EXPECT_DOUBLE_EQ(FindGpu("MI300X")->tf32_flops, 653.7e12);
  EXPECT_EQ(FindGpu("MI210")->Flops("tf32").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FindGpu("1080 Ti")->Flops("fp16").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(DeviceTable, MissingUnitsAreSaid) {
  EXPECT_EQ(FindGpu("V100")->Flops("bf16").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FindGpu("V100")->Flops("fp8").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_DOUBLE_EQ(*FindGpu("A100")->Flops("bf16"), 312e12);
}

}  // namespace
}  // namespace motley
