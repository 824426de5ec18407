// Asks NVML for the cards of this machine, and for how one of them is now.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/daemon/nvidia_cards.h"
#include "worker/daemon/nvml_library.h"

namespace motley::worker {

// All of them, by NVML's index. A card that does not answer is there with its error.
NvidiaCards ReadCards(const NvmlLibrary& nvml);
// By NVML if it could be opened; else what the kernel driver's files in `folder` say, with the reason as `problem`.
// Where these name none, what stands on the bus (PciFolder) is counted.
NvidiaCards LookForCards(const absl::StatusOr<std::unique_ptr<NvmlLibrary>>& nvml, const std::string& folder);

// Why a card runs slower than it could.
struct SlowDown {
  unsigned long long bit;
  const char* label;  // of the metric
  const char* words;
  bool healthy;  // the usual end of a card's speed, and no fault
};
inline constexpr std::array<SlowDown, 5> kSlowDowns = {{{nvml::kSwPowerCap, "power_cap", "power limit", true},
                                                        {nvml::kHwSlowdown, "hardware", "the hardware's own protection", false},
                                                        {nvml::kSwThermal, "thermal", "heat", false},
                                                        {nvml::kHwThermal, "hardware_thermal", "heat beyond its limit", false},
                                                        {nvml::kHwPowerBrake, "power_brake", "the power supply", false}}};

// One look at a card. What it cannot say is -1 (0 for counters and slow-downs).
struct CardSample {
  std::string lost;  // not empty: it cannot be used any more, and nothing below is known
  double utilization = -1, watts = -1, temperature_celsius = -1;
  int64_t memory_bytes = 0, reserved_bytes = 0, used_bytes = -1, clock_mhz = -1;
  unsigned long long slow_downs = 0;
  MemoryErrors memory_errors;
};
CardSample TakeSample(const NvmlLibrary& nvml, nvml::DeviceHandle card);
// What hurts though the card computes: "slowed down: heat"; empty = well.
std::string HealthOf(const CardSample& sample);

// Processes that hold memory of the card, the largest first. UNAVAILABLE: not to be known here.
absl::StatusOr<std::vector<CardProcess>> ReadProcesses(const NvmlLibrary& nvml, nvml::DeviceHandle card);

}  // namespace motley::worker
