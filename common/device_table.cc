#include "common/device_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/nearest.h"

namespace motley {
namespace {

constexpr double kTera = 1e12;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr double kPcie3 = 15.75e9, kPcie4 = 31.5e9, kPcie5 = 63e9;  // x16, one direction
constexpr double kGB = 1e9;

// Columns: name; TFLOP/s in fp32, tf32, fp16, bf16; memory; memory GB/s; link, one direction; PCIe; source. GeForce boards
// accumulate in fp32 at half their fp16 rate, which is the number here. "Cephalo" is its table 3 (GPU specifications), which
// lists fp32 and memory as the authors' machines had them.
constexpr std::array<GpuSpec, 29> kTable = {{
    {"H200", 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera, 140 * kGiB, 4800 * kGB, 450 * kGB, kPcie5,
     "NVIDIA H200 data sheet (SXM, 141 GB); nvidia-smi shows 143,771 MiB"},
    {"H100-SXM", 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera, 80 * kGiB, 3350 * kGB, 450 * kGB, kPcie5,
     "NVIDIA H100 data sheet and Hopper white paper"},
    {"H100-PCIe", 51.2 * kTera, 378 * kTera, 756 * kTera, 756 * kTera, 80 * kGiB, 2000 * kGB, kPcie5, kPcie5,
     "NVIDIA H100 data sheet and Hopper white paper"},
    {"H100-NVL", 60 * kTera, 417.5 * kTera, 835 * kTera, 835 * kTera, 94 * kGiB, 3900 * kGB, 300 * kGB, kPcie5,
     "NVIDIA H100 NVL data sheet"},
    {"A100-40GB", 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 40 * kGiB, 1555 * kGB, 300 * kGB, kPcie4,
     "NVIDIA A100 data sheet (SXM)"},
    {"A100-80GB", 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 80 * kGiB, 2039 * kGB, 300 * kGB, kPcie4,
     "NVIDIA A100 data sheet (SXM)"},
    {"A100-PCIe-40GB", 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 40 * kGiB, 1555 * kGB, kPcie4, kPcie4,
     "NVIDIA A100 data sheet (PCIe, without NVLink bridge)"},
    {"A100-PCIe-80GB", 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 80 * kGiB, 1935 * kGB, kPcie4, kPcie4,
     "NVIDIA A100 data sheet (PCIe, without NVLink bridge)"},
    {"A800", 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 80 * kGiB, 2039 * kGB, 200 * kGB, kPcie4,
     "NVIDIA A800 data sheet (SXM): A100 80 GB with NVLink cut to 400 GB/s"},
    {"A800-PCIe", 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 80 * kGiB, 1935 * kGB, kPcie4, kPcie4,
     "NVIDIA A800 data sheet (PCIe, without NVLink bridge)"},
    {"L40S", 91.6 * kTera, 183 * kTera, 362 * kTera, 362 * kTera, 48 * kGiB, 864 * kGB, kPcie4, kPcie4, "NVIDIA L40S data sheet"},
    {"L4", 30.3 * kTera, 60 * kTera, 121 * kTera, 121 * kTera, 24 * kGiB, 300 * kGB, kPcie4, kPcie4,
     "Cephalo table 3; NVIDIA L4 data sheet"},
    {"A10G", 31.2 * kTera, 35 * kTera, 70 * kTera, 70 * kTera, 24 * kGiB, 600 * kGB, kPcie4, kPcie4,
     "Cephalo table 3; NVIDIA A10G data sheet as published by AWS"},
    {"A6000", 38.7 * kTera, 77.4 * kTera, 154.8 * kTera, 154.8 * kTera, 48 * kGiB, 768 * kGB, kPcie4, kPcie4,
     "Cephalo table 3; NVIDIA RTX A6000 data sheet"},
    {"A40", 37.4 * kTera, 74.8 * kTera, 149.7 * kTera, 149.7 * kTera, 48 * kGiB, 696 * kGB, kPcie4, kPcie4,
     "NVIDIA A40 data sheet"},
    {"V100-16GB", 14.1 * kTera, 0, 112 * kTera, 0, 16 * kGiB, 900 * kGB, 150 * kGB, kPcie3,
     "Cephalo table 3 (the SXM2 data sheet says 15.7 fp32, 125 fp16); NVIDIA V100 data sheet"},
    {"V100-32GB", 15.7 * kTera, 0, 125 * kTera, 0, 32 * kGiB, 900 * kGB, 150 * kGB, kPcie3, "NVIDIA V100 data sheet (SXM2)"},
    {"V100-PCIe-16GB", 14 * kTera, 0, 112 * kTera, 0, 16 * kGiB, 900 * kGB, kPcie3, kPcie3, "NVIDIA V100 data sheet (PCIe)"},
    {"V100-PCIe-32GB", 14 * kTera, 0, 112 * kTera, 0, 32 * kGiB, 900 * kGB, kPcie3, kPcie3, "NVIDIA V100 data sheet (PCIe)"},
    {"V100S-32GB", 16.4 * kTera, 0, 130 * kTera, 0, 32 * kGiB, 1134 * kGB, kPcie3, kPcie3, "NVIDIA V100 data sheet (V100S PCIe)"},
    {"T4", 8.1 * kTera, 0, 65 * kTera, 0, 15 * kGiB, 320 * kGB, kPcie3, kPcie3,
     "Cephalo table 3 (16 GB less ECC); NVIDIA T4 data sheet"},
    {"P100", 9.3 * kTera, 0, 18.7 * kTera, 0, 12 * kGiB, 549 * kGB, kPcie3, kPcie3,
     "Cephalo table 3; NVIDIA P100 PCIe 12 GB data sheet"},
    {"P40", 11.8 * kTera, 0, 0, 0, 24 * kGiB, 346 * kGB, kPcie3, kPcie3, "Cephalo table 3; NVIDIA P40 data sheet"},
    {"RTX-2080-Ti", 13.4 * kTera, 0, 53.8 * kTera, 0, 11 * kGiB, 616 * kGB, kPcie3, kPcie3,
     "NVIDIA Turing white paper (reference board)"},
    {"RTX-3080-Ti", 34.1 * kTera, 34.1 * kTera, 68.2 * kTera, 68.2 * kTera, 12 * kGiB, 912 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper, scaled to the 3080 Ti's units and clock"},
    {"RTX-3090", 35.6 * kTera, 35.6 * kTera, 71.2 * kTera, 71.2 * kTera, 24 * kGiB, 936 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper"},
    {"RTX-4090", 82.6 * kTera, 82.6 * kTera, 165.2 * kTera, 165.2 * kTera, 24 * kGiB, 1008 * kGB, kPcie4, kPcie4,
     "NVIDIA Ada white paper"},
    {"RTX-5090", 104.8 * kTera, 104.8 * kTera, 209.5 * kTera, 209.5 * kTera, 32 * kGiB, 1792 * kGB, kPcie5, kPcie5,
     "NVIDIA RTX Blackwell white paper"},
    {"Titan-RTX", 16.3 * kTera, 0, 130.5 * kTera, 0, 24 * kGiB, 672 * kGB, kPcie3, kPcie3, "NVIDIA Turing white paper"},
}};

// Other names, normalised: as people say them, and as NVIDIA's driver names the boards.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kOtherNames = {{
    {"a100", "a10040gb"},
    {"a100sxm440gb", "a10040gb"},
    {"a100sxm480gb", "a10080gb"},
    {"a10080gbpcie", "a100pcie80gb"},
    {"a80080gb", "a800"},
    {"a800sxm480gb", "a800"},
    {"a80080gbpcie", "a800pcie"},
    {"h100", "h100sxm"},
    {"h10080gbhbm3", "h100sxm"},
    {"p100pcie12gb", "p100"},
    {"rtxa6000", "a6000"},
    {"v100", "v10016gb"},
    {"v100s", "v100s32gb"},
    {"v100spcie32gb", "v100s32gb"},
    {"v100sxm216gb", "v10016gb"},
    {"v100sxm232gb", "v10032gb"},
}};

std::string Normalise(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const std::string_view maker : {"nvidia", "tesla", "geforce"}) {
    if (out.starts_with(maker)) out.erase(0, maker.size());
  }
  for (const auto& [other, ours] : kOtherNames) {
    if (out == other) return std::string(ours);
  }
  return out;
}

// "4090" for "RTX-4090", as people say it.
bool Matches(std::string_view known, const std::string& wanted) {
  const std::string name = Normalise(known);
  return name == wanted || (name.starts_with("rtx") && name.substr(3) == wanted);
}

}  // namespace

absl::StatusOr<double> GpuSpec::Flops(std::string_view precision) const {
  double flops = 0;
  if (precision == "fp32") {
    flops = fp32_flops;
  } else if (precision == "tf32") {
    flops = tf32_flops;
  } else if (precision == "fp16") {
    flops = fp16_flops;
  } else if (precision == "bf16") {
    flops = bf16_flops;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("precision '", std::string(precision), "' is not known; use fp32, tf32, fp16 or bf16"));
  }
  if (flops > 0) return flops;
  return absl::FailedPreconditionError(
      absl::StrCat("a ", std::string(name), " has no ", std::string(precision), " units; use fp32 or give flops_per_second"));
}

std::span<const GpuSpec> GpuTable() { return kTable; }

absl::StatusOr<GpuSpec> FindGpu(std::string_view name) {
  const std::string wanted = Normalise(name);
  for (const GpuSpec& gpu : kTable) {
    if (Matches(gpu.name, wanted)) return gpu;
  }
  std::vector<std::string> known;
  for (const GpuSpec& gpu : kTable) known.emplace_back(gpu.name);
  const std::string nearest = NearestWord(name, known);
  return absl::NotFoundError(absl::StrCat("GPU model '", std::string(name), "' is not in the device table",
                                          nearest.empty() ? "" : "; did you mean '" + nearest + "'?",
                                          " Known: ", absl::StrJoin(known, ", ")));
}

}  // namespace motley
