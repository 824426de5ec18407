// What the papers publish, cell by cell.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace motley::bench {

// One cell: a system's throughput for a model at a batch on a cluster.
struct Cell {
  std::string_view model;  // our preset
  int batch;               // samples a step
  double published;        // samples a second (Cephalo) or TFLOP/s (Zorse); 0 = out of memory
};
struct System {
  std::string_view name;      // as the table calls it
  std::string_view strategy;  // ours that is nearest to it; empty = none
  std::span<const Cell> cells;
};

// Cephalo table 4 (and the systems that table 8 adds): cluster A, fp32, 512 tokens.
inline constexpr std::array kCephaloA = {
    Cell{"vit-g", 128, 6.38},        Cell{"vit-g", 256, 6.41},        Cell{"vit-e", 128, 3.02},
    Cell{"vit-e", 256, 3.23},        Cell{"bert-large", 128, 33.56},  Cell{"bert-large", 256, 33.69},
    Cell{"bert-xlarge", 128, 11.47}, Cell{"bert-xlarge", 256, 11.72}, Cell{"gpt-1.3b", 128, 6.83},
    Cell{"gpt-1.3b", 256, 7.09},     Cell{"gpt-2.7b", 128, 4.57},     Cell{"gpt-2.7b", 256, 4.67},
    Cell{"llama-tiny", 128, 12.58},  Cell{"llama-tiny", 256, 12.91},  Cell{"llama-3b", 128, 4.51},
    Cell{"llama-3b", 256, 4.85}};
inline constexpr std::array kMegatronHetA = {
    Cell{"vit-g", 128, 3.41},       Cell{"vit-g", 256, 0.79},       Cell{"vit-e", 128, 0},
    Cell{"vit-e", 256, 0},          Cell{"bert-large", 128, 19.77}, Cell{"bert-large", 256, 20.57},
    Cell{"bert-xlarge", 128, 6.40}, Cell{"bert-xlarge", 256, 6.80}, Cell{"gpt-1.3b", 128, 4.18},
    Cell{"gpt-1.3b", 256, 4.35},    Cell{"gpt-2.7b", 128, 1.82},    Cell{"gpt-2.7b", 256, 1.82},
    Cell{"llama-tiny", 128, 7.93},  Cell{"llama-tiny", 256, 8.63},  Cell{"llama-3b", 128, 0},
    Cell{"llama-3b", 256, 0}};
inline constexpr std::array kFlashFlexA = {
    Cell{"vit-g", 128, 2.88},       Cell{"vit-g", 256, 2.97},       Cell{"vit-e", 128, 1.38},
    Cell{"vit-e", 256, 1.4},        Cell{"bert-large", 128, 25.64}, Cell{"bert-large", 256, 28.90},
    Cell{"bert-xlarge", 128, 8.63}, Cell{"bert-xlarge", 256, 9.06}, Cell{"gpt-1.3b", 128, 5.81},
    Cell{"gpt-1.3b", 256, 5.83},    Cell{"gpt-2.7b", 128, 2.79},    Cell{"gpt-2.7b", 256, 2.83},
    Cell{"llama-tiny", 128, 8.67},  Cell{"llama-tiny", 256, 8.75},  Cell{"llama-3b", 128, 1.91},
    Cell{"llama-3b", 256, 1.83}};
inline constexpr std::array kFsdpA = {
    Cell{"vit-g", 128, 3.92},       Cell{"vit-g", 256, 0},          Cell{"vit-e", 128, 0},          Cell{"vit-e", 256, 0},
    Cell{"bert-large", 128, 24.50}, Cell{"bert-large", 256, 28.24}, Cell{"bert-xlarge", 128, 7.06}, Cell{"bert-xlarge", 256, 0},
    Cell{"gpt-1.3b", 128, 0},       Cell{"gpt-1.3b", 256, 0},       Cell{"gpt-2.7b", 128, 0},       Cell{"gpt-2.7b", 256, 0},
    Cell{"llama-tiny", 128, 10.62}, Cell{"llama-tiny", 256, 0},     Cell{"llama-3b", 128, 0},       Cell{"llama-3b", 256, 0}};
inline constexpr std::array kWhaleA = {
    Cell{"vit-g", 128, 0},          Cell{"vit-g", 256, 0},          Cell{"vit-e", 128, 0},       Cell{"vit-e", 256, 0},
    Cell{"bert-large", 128, 27.13}, Cell{"bert-large", 256, 28.84}, Cell{"bert-xlarge", 128, 0}, Cell{"bert-xlarge", 256, 0},
    Cell{"gpt-1.3b", 128, 0},       Cell{"gpt-1.3b", 256, 0},       Cell{"gpt-2.7b", 128, 0},    Cell{"gpt-2.7b", 256, 0},
    Cell{"llama-tiny", 128, 0},     Cell{"llama-tiny", 256, 0},     Cell{"llama-3b", 128, 0},    Cell{"llama-3b", 256, 0}};
inline constexpr std::array kHapA = {
    Cell{"vit-g", 128, 0},          Cell{"vit-g", 256, 0},          Cell{"vit-e", 128, 0},       Cell{"vit-e", 256, 0},
    Cell{"bert-large", 128, 17.48}, Cell{"bert-large", 256, 18.54}, Cell{"bert-xlarge", 128, 0}, Cell{"bert-xlarge", 256, 0},
    Cell{"gpt-1.3b", 128, 0},       Cell{"gpt-1.3b", 256, 0},       Cell{"gpt-2.7b", 128, 0},    Cell{"gpt-2.7b", 256, 0},
    Cell{"llama-tiny", 128, 0},     Cell{"llama-tiny", 256, 0},     Cell{"llama-3b", 128, 0},    Cell{"llama-3b", 256, 0}};

// Cephalo table 5: cluster B, fp32, 512 tokens.
inline constexpr std::array kCephaloB = {Cell{"vit-e", 512, 20.37},    Cell{"vit-e", 1024, 26.08},
                                         Cell{"gpt-6.7b", 512, 11.62}, Cell{"gpt-6.7b", 1024, 17.04},
                                         Cell{"llama-7b", 512, 13.12}, Cell{"llama-7b", 1024, 17.74}};
inline constexpr std::array kMegatronHetB = {Cell{"vit-e", 512, 12.06},   Cell{"vit-e", 1024, 12.12},
                                             Cell{"gpt-6.7b", 512, 3.59}, Cell{"gpt-6.7b", 1024, 1.71},
                                             Cell{"llama-7b", 512, 5.53}, Cell{"llama-7b", 1024, 1.65}};
inline constexpr std::array kFlashFlexB = {Cell{"vit-e", 512, 12.84},   Cell{"vit-e", 1024, 13.37},
                                           Cell{"gpt-6.7b", 512, 4.78}, Cell{"gpt-6.7b", 1024, 4.99},
                                           Cell{"llama-7b", 512, 5.42}, Cell{"llama-7b", 1024, 5.47}};

inline constexpr std::array kCephaloSystemsA = {System{"Cephalo", "cephalo", kCephaloA},
                                                System{"Megatron-Het", "megatron", kMegatronHetA},
                                                System{"FlashFlex", "hexiscale", kFlashFlexA},
                                                System{"FSDP", "fsdp", kFsdpA},
                                                System{"Whale", "", kWhaleA},
                                                System{"HAP", "", kHapA}};
inline constexpr std::array kCephaloSystemsB = {System{"Cephalo", "cephalo", kCephaloB},
                                                System{"Megatron-Het", "megatron", kMegatronHetB},
                                                System{"FlashFlex", "hexiscale", kFlashFlexB}};

// Zorse table 3: TFLOP/s, fp16, batches of 2^20 tokens: 256 samples of 4,096 tokens on A, 1,024 of 1,024 on B, 2,048 of 512 on C.
inline constexpr std::array kZorseA = {Cell{"llama-7b", 256, 4370.56},  Cell{"llama-13b", 256, 4917.87},
                                       Cell{"llama-33b", 256, 5281.64}, Cell{"llama-65b", 256, 5239.13},
                                       Cell{"gpt-6.7b", 256, 4155.60},  Cell{"gpt-13b", 256, 4777.44}};
inline constexpr std::array kTorchTitanA = {Cell{"llama-7b", 256, 4223.80}, Cell{"llama-13b", 256, 3837.49},
                                            Cell{"llama-33b", 256, 944.47}, Cell{"llama-65b", 256, 0},
                                            Cell{"gpt-6.7b", 256, 4154.76}, Cell{"gpt-13b", 256, 3269.15}};
inline constexpr std::array kHexiScaleA = {Cell{"llama-7b", 256, 3193.46},  Cell{"llama-13b", 256, 3270.32},
                                           Cell{"llama-33b", 256, 3064.22}, Cell{"llama-65b", 256, 2048.63},
                                           Cell{"gpt-6.7b", 256, 3778.72},  Cell{"gpt-13b", 256, 4214.12}};
inline constexpr std::array kCephaloOnZorseA = {Cell{"llama-7b", 256, 1714.52},  Cell{"llama-13b", 256, 1656.29},
                                                Cell{"llama-33b", 256, 1943.89}, Cell{"llama-65b", 256, 1937.64},
                                                Cell{"gpt-6.7b", 256, 2786.97},  Cell{"gpt-13b", 256, 2645.70}};
inline constexpr std::array kZorseB = {Cell{"llama-7b", 1024, 3412.88}, Cell{"llama-13b", 1024, 2965.64},
                                       Cell{"llama-33b", 1024, 2658.29}};
inline constexpr std::array kTorchTitanB = {Cell{"llama-7b", 1024, 2033.53}, Cell{"llama-13b", 1024, 1956.09},
                                            Cell{"llama-33b", 1024, 0}};
inline constexpr std::array kHexiScaleB = {Cell{"llama-7b", 1024, 1194.89}, Cell{"llama-13b", 1024, 1152.73},
                                           Cell{"llama-33b", 1024, 657.16}};
inline constexpr std::array kCephaloOnZorseB = {Cell{"llama-7b", 1024, 2274.50}, Cell{"llama-13b", 1024, 1992.24},
                                                Cell{"llama-33b", 1024, 1373.31}};
inline constexpr std::array kZorseC = {Cell{"llama-7b", 2048, 3936.94}, Cell{"llama-13b", 2048, 3357.97},
                                       Cell{"llama-33b", 2048, 1548.60}};
inline constexpr std::array kTorchTitanC = {Cell{"llama-7b", 2048, 2441.70}, Cell{"llama-13b", 2048, 2061.55},
                                            Cell{"llama-33b", 2048, 0}};
inline constexpr std::array kHexiScaleC = {Cell{"llama-7b", 2048, 2624.63}, Cell{"llama-13b", 2048, 1952.31},
                                           Cell{"llama-33b", 2048, 0}};
inline constexpr std::array kCephaloOnZorseC = {Cell{"llama-7b", 2048, 1213.39}, Cell{"llama-13b", 2048, 1222.96},
                                                Cell{"llama-33b", 2048, 775.42}};

inline constexpr std::array kZorseSystemsA = {
    System{"Zorse", "zorse", kZorseA}, System{"TorchTitan-Het", "megatron", kTorchTitanA},
    System{"HexiScale", "hexiscale", kHexiScaleA}, System{"Cephalo", "cephalo", kCephaloOnZorseA}};
inline constexpr std::array kZorseSystemsB = {
    System{"Zorse", "zorse", kZorseB}, System{"TorchTitan-Het", "megatron", kTorchTitanB},
    System{"HexiScale", "hexiscale", kHexiScaleB}, System{"Cephalo", "cephalo", kCephaloOnZorseB}};
inline constexpr std::array kZorseSystemsC = {
    System{"Zorse", "zorse", kZorseC}, System{"TorchTitan-Het", "megatron", kTorchTitanC},
    System{"HexiScale", "hexiscale", kHexiScaleC}, System{"Cephalo", "cephalo", kCephaloOnZorseC}};

}  // namespace motley::bench
