// What is known of an NVIDIA card that a worker offers, besides what every device has. Plain values.
#pragma once

#include <cstdint>
#include <string>

namespace motley {

// Facts that do not change while the worker runs, and what others held of the card when it looked.
struct CardDescription {
  std::string uuid;                         // "GPU-8f6c...": the card, whatever its index is today
  std::string bus;                          // "0000:3b:00.0"
  std::string driver;                       // "580.65.06"
  int driver_cuda = 0;                      // newest CUDA that the driver runs: 13000 is 13.0
  int compute_capability = 0;               // 86 is sm_86
  int pcie_generation = 0, pcie_lanes = 0;  // as linked, not as the card could
  int64_t used_by_others_bytes = 0;
  friend bool operator==(const CardDescription&, const CardDescription&) = default;
};

}  // namespace motley
