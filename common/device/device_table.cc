#include "common/device/device_table.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr double kTera = 1e12;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr double kPcie3 = 15.75e9, kPcie4 = 31.5e9, kPcie5 = 63e9;  // x16, one direction
constexpr double kPcie4x8 = kPcie4 / 2, kPcie5x8 = kPcie5 / 2;
constexpr double kGB = 1e9;

// Columns: name; TFLOP/s in fp32, tf32, fp16, bf16; memory; memory GB/s; link, one direction; PCIe; source. GeForce boards
// accumulate in fp32 at half their fp16 rate, which is the number here. "Cephalo" is its table 3 (GPU specifications), which
// lists fp32 and memory as the authors' machines had them. Data sheets of workstation cards name one tensor rate alone, with
// sparsity: fp16 up to Ampere, fp8 of Ada, fp4 of Blackwell; fp16 here is a half, a quarter, an eighth of it, and tf32 half of
// fp16, as in the white papers of the same chips. AMD's fp32 is that of its matrix cores. Memory of older boards is that which is
// left with ECC, as their driver shows it.
constexpr std::array<GpuSpec, 102> kTable = {{
    {"B200", 75 * kTera, 1100 * kTera, 2250 * kTera, 2250 * kTera, 179 * kGiB, 7700 * kGB, 900 * kGB, kPcie5,
     "NVIDIA Blackwell data sheet (HGX B200, 180 GB; sparse rates halved); nvidia-smi shows 183,359 MiB"},
    {"GH200", 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera, 96 * kGiB, 4000 * kGB, 450 * kGB, 450 * kGB,
     "NVIDIA GH200 data sheet (the GPU, 96 GB HBM3) and Hopper white paper; the host link is NVLink-C2C, not PCIe"},
    {"H200", 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera, 140 * kGiB, 4800 * kGB, 450 * kGB, kPcie5,
     "NVIDIA H200 data sheet (SXM, 141 GB); nvidia-smi shows 143,771 MiB"},
    {"H100-SXM", 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera, 80 * kGiB, 3350 * kGB, 450 * kGB, kPcie5,
     "NVIDIA H100 data sheet and Hopper white paper"},
    {"H100-PCIe", 51.2 * kTera, 378 * kTera, 756 * kTera, 756 * kTera, 80 * kGiB, 2000 * kGB, kPcie5, kPcie5,
     "NVIDIA H100 data sheet and Hopper white paper"},
    {"H100-NVL", 60 * kTera, 417.5 * kTera, 835 * kTera, 835 * kTera, 94 * kGiB, 3900 * kGB, 300 * kGB, kPcie5,
     "NVIDIA H100 NVL data sheet"},
    {"H800", 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera, 80 * kGiB, 3350 * kGB, 200 * kGB, kPcie5,
     "NVIDIA H800 data sheet (SXM): H100 with NVLink cut to 400 GB/s"},
    {"H800-PCIe", 51.2 * kTera, 378 * kTera, 756 * kTera, 756 * kTera, 80 * kGiB, 2000 * kGB, kPcie5, kPcie5,
     "NVIDIA H800 data sheet (PCIe, without NVLink bridge)"},
    {"H20", 44 * kTera, 74 * kTera, 148 * kTera, 148 * kTera, 96 * kGiB, 4000 * kGB, 450 * kGB, kPcie5,
     "NVIDIA H20 data sheet (SXM, 96 GB HBM3); nvidia-smi shows 97,871 MiB"},
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
    {"L40", 90.5 * kTera, 90.5 * kTera, 181.05 * kTera, 181.05 * kTera, 48 * kGiB, 864 * kGB, kPcie4, kPcie4,
     "NVIDIA L40 data sheet"},
    {"L20", 59.8 * kTera, 59.8 * kTera, 119.5 * kTera, 119.5 * kTera, 48 * kGiB, 864 * kGB, kPcie4, kPcie4,
     "NVIDIA L20 data sheet; cores and clock give 59.35 in fp32"},
    {"L4", 30.3 * kTera, 60 * kTera, 121 * kTera, 121 * kTera, 24 * kGiB, 300 * kGB, kPcie4, kPcie4,
     "Cephalo table 3; NVIDIA L4 data sheet"},
    {"A10G", 31.2 * kTera, 35 * kTera, 70 * kTera, 70 * kTera, 24 * kGiB, 600 * kGB, kPcie4, kPcie4,
     "Cephalo table 3; NVIDIA A10G data sheet as published by AWS"},
    {"A10", 31.2 * kTera, 62.5 * kTera, 125 * kTera, 125 * kTera, 24 * kGiB, 600 * kGB, kPcie4, kPcie4, "NVIDIA A10 data sheet"},
    {"A30", 10.3 * kTera, 82 * kTera, 165 * kTera, 165 * kTera, 24 * kGiB, 933 * kGB, kPcie4, kPcie4,
     "NVIDIA A30 data sheet (without NVLink bridge)"},
    {"A6000", 38.7 * kTera, 77.4 * kTera, 154.8 * kTera, 154.8 * kTera, 48 * kGiB, 768 * kGB, kPcie4, kPcie4,
     "Cephalo table 3; NVIDIA RTX A6000 data sheet"},
    {"A5000", 27.8 * kTera, 55.55 * kTera, 111.1 * kTera, 111.1 * kTera, 24 * kGiB, 768 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX A5000 data sheet: 222.2 with sparsity (without NVLink bridge)"},
    {"A4500", 23.7 * kTera, 47.3 * kTera, 94.6 * kTera, 94.6 * kTera, 20 * kGiB, 640 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX A4500 data sheet: 189.2 with sparsity (without NVLink bridge)"},
    {"A4000", 19.2 * kTera, 38.35 * kTera, 76.7 * kTera, 76.7 * kTera, 16 * kGiB, 448 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX A4000 data sheet: 153.4 with sparsity"},
    {"A2000-12GB", 8 * kTera, 15.98 * kTera, 31.95 * kTera, 31.95 * kTera, 12 * kGiB, 288 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX A2000 data sheet: 63.9 with sparsity (12 GB board)"},
    {"A2000", 8 * kTera, 15.98 * kTera, 31.95 * kTera, 31.95 * kTera, 6 * kGiB, 288 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX A2000 data sheet: 63.9 with sparsity (6 GB board)"},
    {"A2", 4.5 * kTera, 9 * kTera, 18 * kTera, 18 * kTera, 15 * kGiB, 200 * kGB, kPcie4x8, kPcie4x8,
     "NVIDIA A2 data sheet (PCIe x8, 16 GB less ECC)"},
    {"RTX-PRO-6000", 125 * kTera, 250 * kTera, 500 * kTera, 500 * kTera, 96 * kGiB, 1792 * kGB, kPcie5, kPcie5,
     "NVIDIA RTX PRO 6000 Blackwell Workstation Edition data sheet: fp4 4000 with sparsity"},
    {"RTX-PRO-6000-Server", 120 * kTera, 250 * kTera, 500 * kTera, 500 * kTera, 96 * kGiB, 1597 * kGB, kPcie5, kPcie5,
     "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet: fp4 4000 with sparsity"},
    {"RTX-PRO-6000-Max-Q", 110 * kTera, 219.4 * kTera, 438.9 * kTera, 438.9 * kTera, 96 * kGiB, 1792 * kGB, kPcie5, kPcie5,
     "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition data sheet: fp4 3511 with sparsity"},
    {"RTX-6000-Ada", 91.1 * kTera, 182.1 * kTera, 364.25 * kTera, 364.25 * kTera, 48 * kGiB, 960 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX 6000 Ada Generation data sheet: fp8 1457 with sparsity"},
    {"RTX-5000-Ada", 65.3 * kTera, 130.55 * kTera, 261.1 * kTera, 261.1 * kTera, 32 * kGiB, 576 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX 5000 Ada Generation data sheet: fp8 1044.4 with sparsity"},
    {"RTX-4500-Ada", 39.6 * kTera, 79.25 * kTera, 158.5 * kTera, 158.5 * kTera, 24 * kGiB, 432 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX 4500 Ada Generation data sheet: fp8 634 with sparsity"},
    {"RTX-4000-Ada", 26.7 * kTera, 40.95 * kTera, 81.9 * kTera, 81.9 * kTera, 20 * kGiB, 360 * kGB, kPcie4, kPcie4,
     "NVIDIA RTX 4000 Ada Generation data sheet: fp8 327.6 with sparsity; cores and clock give 427.6, so 106.9 in fp16"},
    {"RTX-2000-Ada", 12 * kTera, 23.99 * kTera, 47.98 * kTera, 47.98 * kTera, 16 * kGiB, 224 * kGB, kPcie4x8, kPcie4x8,
     "NVIDIA RTX 2000 Ada Generation data sheet: fp8 191.9 with sparsity (PCIe x8)"},
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
    {"P100-SXM2-16GB", 10.6 * kTera, 0, 21.2 * kTera, 0, 16 * kGiB, 732 * kGB, 80 * kGB, kPcie3, "NVIDIA P100 data sheet (SXM2)"},
    {"P100-PCIe-16GB", 9.3 * kTera, 0, 18.7 * kTera, 0, 16 * kGiB, 732 * kGB, kPcie3, kPcie3,
     "NVIDIA P100 data sheet (PCIe, 16 GB)"},
    {"P40", 11.8 * kTera, 0, 0, 0, 24 * kGiB, 346 * kGB, kPcie3, kPcie3, "Cephalo table 3; NVIDIA P40 data sheet"},
    {"P4", 5.5 * kTera, 0, 0, 0, 15 * kGiB / 2, 192 * kGB, kPcie3, kPcie3,
     "NVIDIA P4 data sheet (8 GB less ECC); fp16 runs at 1/64 of fp32 and counts as none"},
    {"M40-24GB", 6.8 * kTera, 0, 0, 0, 45 * kGiB / 2, 288 * kGB, kPcie3, kPcie3,
     "NVIDIA M40 24 GB product brief, at boost clock (less ECC); it has no fp16 units"},
    {"M40", 6.8 * kTera, 0, 0, 0, 45 * kGiB / 4, 288 * kGB, kPcie3, kPcie3,
     "NVIDIA M40 product brief, at boost clock (12 GB less ECC); it has no fp16 units"},
    {"K80", 4.37 * kTera, 0, 0, 0, 45 * kGiB / 4, 240 * kGB, kPcie3, kPcie3,
     "NVIDIA K80 board specification, at boost clock, one of a board's two dies (12 GB less ECC), which the driver shows as "
     "cards; they share the slot"},
    {"Quadro-P6000", 12.6 * kTera, 0, 0, 0, 24 * kGiB, 432 * kGB, kPcie3, kPcie3,
     "NVIDIA Quadro P6000 data sheet; fp16 runs at 1/64 of fp32 and counts as none"},
    {"Titan-Xp", 12.1 * kTera, 0, 0, 0, 12 * kGiB, 547.7 * kGB, kPcie3, kPcie3,
     "NVIDIA's specifications of the TITAN Xp; fp16 runs at 1/64 of fp32 and counts as none"},
    {"Titan-X-Pascal", 11 * kTera, 0, 0, 0, 12 * kGiB, 480 * kGB, kPcie3, kPcie3,
     "NVIDIA's specifications of the TITAN X (Pascal); fp16 runs at 1/64 of fp32 and counts as none"},
    {"GTX-1070", 6.5 * kTera, 0, 0, 0, 8 * kGiB, 256 * kGB, kPcie3, kPcie3,
     "NVIDIA's specifications, at boost clock; fp16 runs at 1/64 of fp32 and counts as none"},
    {"GTX-1070-Ti", 8.2 * kTera, 0, 0, 0, 8 * kGiB, 256 * kGB, kPcie3, kPcie3,
     "NVIDIA's specifications, at boost clock; fp16 runs at 1/64 of fp32 and counts as none"},
    {"GTX-1080", 8.9 * kTera, 0, 0, 0, 8 * kGiB, 320 * kGB, kPcie3, kPcie3,
     "NVIDIA GeForce GTX 1080 white paper, at boost clock; fp16 runs at 1/64 of fp32 and counts as none"},
    {"GTX-1080-Ti", 11.3 * kTera, 0, 0, 0, 11 * kGiB, 484 * kGB, kPcie3, kPcie3,
     "NVIDIA's specifications; fp16 runs at 1/64 of fp32 and counts as none"},
    {"RTX-2080-Ti", 13.4 * kTera, 0, 53.8 * kTera, 0, 11 * kGiB, 616 * kGB, kPcie3, kPcie3,
     "NVIDIA Turing white paper (reference board)"},
    {"RTX-2080-SUPER", 11.2 * kTera, 0, 44.6 * kTera, 0, 8 * kGiB, 496 * kGB, kPcie3, kPcie3,
     "NVIDIA Turing white paper, scaled to this board's units and clock"},
    {"RTX-2080", 10.1 * kTera, 0, 40.3 * kTera, 0, 8 * kGiB, 448 * kGB, kPcie3, kPcie3,
     "NVIDIA Turing white paper (reference board)"},
    {"RTX-2070-SUPER", 9.1 * kTera, 0, 36.2 * kTera, 0, 8 * kGiB, 448 * kGB, kPcie3, kPcie3,
     "NVIDIA Turing white paper, scaled to this board's units and clock"},
    {"RTX-2070", 7.5 * kTera, 0, 29.9 * kTera, 0, 8 * kGiB, 448 * kGB, kPcie3, kPcie3,
     "NVIDIA Turing white paper (reference board)"},
    {"RTX-2060-SUPER", 7.2 * kTera, 0, 28.7 * kTera, 0, 8 * kGiB, 448 * kGB, kPcie3, kPcie3,
     "NVIDIA Turing white paper, scaled to this board's units and clock"},
    {"RTX-2060", 6.5 * kTera, 0, 25.8 * kTera, 0, 6 * kGiB, 336 * kGB, kPcie3, kPcie3,
     "NVIDIA Turing white paper, scaled to this board's units and clock (6 GB board; one of 12 GB has its name)"},
    {"Quadro-RTX-8000", 16.3 * kTera, 0, 130.5 * kTera, 0, 48 * kGiB, 672 * kGB, kPcie3, kPcie3,
     "NVIDIA Quadro RTX 8000 data sheet (without NVLink bridge)"},
    {"Quadro-RTX-6000", 16.3 * kTera, 0, 130.5 * kTera, 0, 24 * kGiB, 672 * kGB, kPcie3, kPcie3,
     "NVIDIA Quadro RTX 6000 data sheet (without NVLink bridge)"},
    {"Quadro-RTX-5000", 11.2 * kTera, 0, 89.2 * kTera, 0, 16 * kGiB, 448 * kGB, kPcie3, kPcie3,
     "NVIDIA Quadro RTX 5000 data sheet (without NVLink bridge)"},
    {"Quadro-RTX-4000", 7.1 * kTera, 0, 57 * kTera, 0, 8 * kGiB, 416 * kGB, kPcie3, kPcie3, "NVIDIA Quadro RTX 4000 data sheet"},
    {"T1000-8GB", 2.5 * kTera, 0, 0, 0, 8 * kGiB, 160 * kGB, kPcie3, kPcie3,
     "NVIDIA T1000 data sheet (8 GB board); it has no tensor cores, and the data sheet no fp16 rate"},
    {"T1000", 2.5 * kTera, 0, 0, 0, 4 * kGiB, 160 * kGB, kPcie3, kPcie3,
     "NVIDIA T1000 data sheet (4 GB board); it has no tensor cores, and the data sheet no fp16 rate"},
    {"RTX-3060-Ti", 16.2 * kTera, 16.2 * kTera, 32.4 * kTera, 32.4 * kTera, 8 * kGiB, 448 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper, scaled to this board's units and clock"},
    {"RTX-3060", 12.7 * kTera, 12.7 * kTera, 25.5 * kTera, 25.5 * kTera, 12 * kGiB, 360 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper, scaled to the 3060's units and clock (12 GB board; one of 8 GB has its name)"},
    {"RTX-3070", 20.3 * kTera, 20.3 * kTera, 40.6 * kTera, 40.6 * kTera, 8 * kGiB, 448 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper, appendix A"},
    {"RTX-3070-Ti", 21.7 * kTera, 21.7 * kTera, 43.5 * kTera, 43.5 * kTera, 8 * kGiB, 608 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper, scaled to this board's units and clock"},
    {"RTX-3080", 29.8 * kTera, 29.8 * kTera, 59.5 * kTera, 59.5 * kTera, 10 * kGiB, 760 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper (10 GB board; one of 12 GB has its name)"},
    {"RTX-3080-Ti", 34.1 * kTera, 34.1 * kTera, 68.2 * kTera, 68.2 * kTera, 12 * kGiB, 912 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper, scaled to the 3080 Ti's units and clock"},
    {"RTX-3090", 35.6 * kTera, 35.6 * kTera, 71.2 * kTera, 71.2 * kTera, 24 * kGiB, 936 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper"},
    {"RTX-3090-Ti", 40 * kTera, 40 * kTera, 80 * kTera, 80 * kTera, 24 * kGiB, 1008 * kGB, kPcie4, kPcie4,
     "NVIDIA Ampere GA102 white paper, scaled to the 3090 Ti's units and clock"},
    {"RTX-4060", 15.1 * kTera, 15.1 * kTera, 30.2 * kTera, 30.2 * kTera, 8 * kGiB, 272 * kGB, kPcie4x8, kPcie4x8,
     "NVIDIA Ada white paper, scaled to this board's units and clock (PCIe x8)"},
    {"RTX-4060-Ti", 22.1 * kTera, 22.1 * kTera, 44.1 * kTera, 44.1 * kTera, 8 * kGiB, 288 * kGB, kPcie4x8, kPcie4x8,
     "NVIDIA Ada white paper, scaled to this board's units and clock (PCIe x8; 8 GB board; one of 16 GB has its name)"},
    {"RTX-4060-Ti-16GB", 22.1 * kTera, 22.1 * kTera, 44.1 * kTera, 44.1 * kTera, 16 * kGiB, 288 * kGB, kPcie4x8, kPcie4x8,
     "NVIDIA Ada white paper, scaled to this board's units and clock (PCIe x8; 16 GB board)"},
    {"RTX-4070", 29.1 * kTera, 29.1 * kTera, 58.3 * kTera, 58.3 * kTera, 12 * kGiB, 504 * kGB, kPcie4, kPcie4,
     "NVIDIA Ada white paper, scaled to this board's units and clock"},
    {"RTX-4070-SUPER", 35.5 * kTera, 35.5 * kTera, 71 * kTera, 71 * kTera, 12 * kGiB, 504 * kGB, kPcie4, kPcie4,
     "NVIDIA Ada white paper, scaled to this board's units and clock"},
    {"RTX-4070-Ti-SUPER", 44.1 * kTera, 44.1 * kTera, 88.2 * kTera, 88.2 * kTera, 16 * kGiB, 672 * kGB, kPcie4, kPcie4,
     "NVIDIA Ada white paper, scaled to this board's units and clock"},
    {"RTX-4070-Ti", 40.1 * kTera, 40.1 * kTera, 80.2 * kTera, 80.2 * kTera, 12 * kGiB, 504 * kGB, kPcie4, kPcie4,
     "NVIDIA Ada white paper"},
    {"RTX-4080", 48.7 * kTera, 48.7 * kTera, 97.5 * kTera, 97.5 * kTera, 16 * kGiB, 716.8 * kGB, kPcie4, kPcie4,
     "NVIDIA Ada white paper"},
    {"RTX-4080-SUPER", 52.2 * kTera, 52.2 * kTera, 104.4 * kTera, 104.4 * kTera, 16 * kGiB, 736 * kGB, kPcie4, kPcie4,
     "NVIDIA Ada white paper, scaled to this board's units and clock"},
    {"RTX-4090", 82.6 * kTera, 82.6 * kTera, 165.2 * kTera, 165.2 * kTera, 24 * kGiB, 1008 * kGB, kPcie4, kPcie4,
     "NVIDIA Ada white paper"},
    {"RTX-5060-Ti-16GB", 23.7 * kTera, 23.7 * kTera, 47.4 * kTera, 47.4 * kTera, 16 * kGiB, 448 * kGB, kPcie5x8, kPcie5x8,
     "NVIDIA RTX Blackwell white paper, scaled to this board's units and clock (PCIe x8; 16 GB board)"},
    {"RTX-5060-Ti", 23.7 * kTera, 23.7 * kTera, 47.4 * kTera, 47.4 * kTera, 8 * kGiB, 448 * kGB, kPcie5x8, kPcie5x8,
     "NVIDIA RTX Blackwell white paper, scaled to this board's units and clock (PCIe x8; 8 GB board; one of 16 GB has its name)"},
    {"RTX-5060", 19.2 * kTera, 19.2 * kTera, 38.4 * kTera, 38.4 * kTera, 8 * kGiB, 448 * kGB, kPcie5x8, kPcie5x8,
     "NVIDIA RTX Blackwell white paper, scaled to this board's units and clock (PCIe x8)"},
    {"RTX-5070", 30.9 * kTera, 30.9 * kTera, 61.7 * kTera, 61.7 * kTera, 12 * kGiB, 672 * kGB, kPcie5, kPcie5,
     "NVIDIA RTX Blackwell white paper"},
    {"RTX-5070-Ti", 43.9 * kTera, 43.9 * kTera, 87.9 * kTera, 87.9 * kTera, 16 * kGiB, 896 * kGB, kPcie5, kPcie5,
     "NVIDIA RTX Blackwell white paper"},
    {"RTX-5080", 56.3 * kTera, 56.3 * kTera, 112.6 * kTera, 112.6 * kTera, 16 * kGiB, 960 * kGB, kPcie5, kPcie5,
     "NVIDIA RTX Blackwell white paper"},
    {"RTX-5090", 104.8 * kTera, 104.8 * kTera, 209.5 * kTera, 209.5 * kTera, 32 * kGiB, 1792 * kGB, kPcie5, kPcie5,
     "NVIDIA RTX Blackwell white paper"},
    {"Titan-RTX", 16.3 * kTera, 0, 130.5 * kTera, 0, 24 * kGiB, 672 * kGB, kPcie3, kPcie3, "NVIDIA Turing white paper"},
    {"Titan-V", 13.8 * kTera, 0, 110 * kTera, 0, 12 * kGiB, 653 * kGB, kPcie3, kPcie3, "NVIDIA's specifications of the Titan V"},
    {"MI300X", 163.4 * kTera, 653.7 * kTera, 1307.4 * kTera, 1307.4 * kTera, 192 * kGiB, 5300 * kGB, 448 * kGB, kPcie5,
     "AMD Instinct MI300X data sheet; the link is its seven Infinity Fabric links together, 64 GB/s to each peer"},
    {"MI250-GCD", 45.25 * kTera, 0, 181.05 * kTera, 181.05 * kTera, 64 * kGiB, 1638.4 * kGB, 150 * kGB, kPcie4,
     "AMD Instinct MI250 data sheet, one of a card's two dies: ROCm counts each as a device; the link is half of the card's six "
     "Infinity Fabric links, beside 200 GB/s to the other die"},
    {"MI210", 45.3 * kTera, 0, 181 * kTera, 181 * kTera, 64 * kGiB, 1638.4 * kGB, kPcie4, kPcie4,
     "AMD Instinct MI210 data sheet (without Infinity Fabric bridge)"},
}};

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

}  // namespace motley
