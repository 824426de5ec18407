// The NVIDIA cards of this machine: what NVML says of them (nvml_cards), or, where it cannot be asked, which ones the kernel's
// driver names in its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace motley::worker {

struct CardProcess {
  int64_t pid = 0;
  std::string name;   // "python3"; empty: of another container or user
  int64_t bytes = 0;  // of the card's memory; -1 = not known
};

enum class ComputeMode { kShared, kExclusive, kProhibited };

// That ECC could not correct. A card without ECC has none.
struct MemoryErrors {
  int64_t uncorrected = 0;    // since the driver was loaded
  bool contains = false;      // what meets one is ended and the page not used again: nothing else is harmed
  bool remap_failed = false;  // there was no spare row for a bad one
};

struct NvidiaCard {
  std::string bus;    // "0000:3b:00.0"
  std::string model;  // as the driver names it: "NVIDIA A100-SXM4-40GB"
  // From here on by NVML alone.
  int index = 0;                       // NVML's, by bus address
  std::string uuid;                    // "GPU-8f6c..."
  std::string error;                   // why it cannot be asked: "GPU is lost (fell off the bus)"; nothing below is known then
  int64_t memory_bytes = 0;            // of the board
  int64_t reserved_bytes = 0;          // by driver and firmware
  int64_t used_bytes = 0;              // by anybody
  std::vector<CardProcess> processes;  // that hold memory, the largest first
  int compute_capability = 0;          // 86
  int pcie_generation = 0;             // that card and slot could have: an idle card links at a lower one
  int pcie_lanes = 0, most_pcie_lanes = 0;  // as linked; as card and slot could have
  std::vector<std::string> nvlink_peers;    // bus addresses
  std::vector<std::string> p2p_peers;       // of cards that it reaches past the host's memory
  int power_limit_watts = 0;
  MemoryErrors memory_errors;
  ComputeMode mode = ComputeMode::kShared;
  bool mig = false;  // cut into instances
};

struct NvidiaCards {
  std::string driver;             // "535.129.03"; empty: not known
  std::vector<NvidiaCard> cards;  // by bus address, as CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them
  int driver_cuda = 0;            // 12020: runs CUDA 12.2; 0 = not known
  absl::Status problem;           // why NVML could not be asked; OK: all of the above is known
  int on_bus = 0;                 // cards on the PCI bus, where neither NVML nor the driver's files name one
};

// The driver's folder: $MOTLEY_NVIDIA_PROC, or /proc/driver/nvidia.
std::string NvidiaFolder();
// The kernel's list of PCI devices: $MOTLEY_PCI_DEVICES, or /sys/bus/pci/devices.
std::string PciFolder();
// Of `folder`: NVIDIA's that show pictures or compute. They are seen without any driver, and in containers that cannot use them.
int CountCardsOnBus(const std::string& folder);
// Reads `folder`/version and `folder`/gpus/*/information. None where there is no driver.
NvidiaCards FindNvidiaCards(const std::string& folder);
// "2 x NVIDIA A100-SXM4-40GB, Tesla T4, driver 535.129.03"
std::string Describe(const NvidiaCards& found);
// "NVIDIA RTX A6000 at 0000:3b:00.0"
std::string Name(const NvidiaCard& card);
// "python3 (process 4711) 38.2 GiB, process 5 1.0 GiB": who holds the card's memory; empty: nobody is known.
std::string Holders(const std::vector<CardProcess>& processes);
// Why such a card must not be used; empty: it may be.
std::string WhyUnusable(const MemoryErrors& errors);
// What should be known of a card that may be used; empty: nothing.
std::string Contained(const MemoryErrors& errors);
std::string Gibibytes(int64_t bytes);  // "38.2 GiB"

}  // namespace motley::worker
