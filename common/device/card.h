// What is known of an NVIDIA card that a worker offers, besides what every device has. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace motley {

// Facts that do not change while the worker runs, and what it said of the card last: when it joined, or later (CardReport).
struct CardDescription {
  std::string uuid;            // "GPU-8f6c...": the card, whatever its index is today
  std::string bus;             // "0000:3b:00.0"
  std::string driver;          // "580.65.06"
  int driver_cuda = 0;         // newest CUDA that the driver runs: 13000 is 13.0
  int compute_capability = 0;  // 86 is sm_86
  int pcie_generation = 0,
      pcie_lanes = 0;  // the generation of card and slot (an idle card links at a lower one), lanes as linked
  int64_t used_by_others_bytes = 0;
  std::string name;                       // as the driver has it: "NVIDIA RTX A6000"
  std::vector<std::string> nvlink_peers;  // bus addresses of cards of this node, sorted
  std::vector<std::string> p2p_peers;     // those that it reaches past the host's memory, over PCIe or NVLink; the same
  int power_limit_watts = 0;              // 0 = not known
  int nccl_version = 0;                   // that a rank on it opens: 22809 is 2.28.9; 0 = none
  std::string kernels;  // of our own that a rank on it launches: digits of their file's digest; empty = PyTorch's operators
  std::string why_no_kernels;  // where there are none
  std::string note;            // what a reader should know: "not in the device table; nearest: RTX-3090"
  std::string health;          // what is wrong though it computes: "slowed down: power limit"; empty = well
  std::string lost;            // why it cannot be used any more; empty = it can
  friend bool operator==(const CardDescription&, const CardDescription&) = default;
};

// A card of a node that its worker does not offer.
struct UnusedCard {
  std::string card;  // "NVIDIA RTX A6000 at 0000:3b:00.0"
  std::string reason;
  friend bool operator==(const UnusedCard&, const UnusedCard&) = default;
};

// Of the card's PCIe link, each direction, before protocol overhead; 0 = not known.
double HostLinkBytesPerSecond(const CardDescription& card);

}  // namespace motley
