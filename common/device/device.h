// What a device is, as its worker describes it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/device/card.h"

namespace motley {

// The part of a device's memory that no plan uses where nobody says another: what allocators lose between blocks is not planned.
inline constexpr double kDefaultMemoryReserve = 0.1;

enum class DeviceKind { kCpu, kEmulated, kCuda };

// An emulated device runs real tensors through the real engine; only its speed is declared: a compute instruction takes
// launch + FLOPs / flops_per_second, a transfer bytes / the rate of each link it crosses. Numbers are what the rank obeys,
// after the cluster's time dilation and memory scale.
struct DeviceDescription {
  DeviceId id;
  std::string model;  // "A6000", "cpu"
  DeviceKind kind = DeviceKind::kCpu;
  int64_t memory_bytes = 0;     // allocations beyond it fail; 0 = not limited
  double flops_per_second = 0;  // 0 = as fast as the host
  absl::Duration launch;
  double link_bytes_per_second = 0;       // the device's own link, each direction; 0 = not paced
  double node_link_bytes_per_second = 0;  // the node's NIC, each direction, shared by its devices; 0 = not paced
  absl::Duration link_latency;
  // To the host's memory, each direction. Emulated devices obey it; of cards it is what plans take; 0 = not paced, not known.
  double host_link_bytes_per_second = 0;
  int host_root = -1;  // the number of that link on the node: devices with one number share it; -1 = the device's own
  // Of the host's memory, what all ranks of the node together may keep there for their devices (offload); 0 = none.
  int64_t node_host_memory_bytes = 0;
  int threads = 1;       // of tensor operators: what an emulated device computes with is no part of its speed
  std::string libtorch;  // of the build of motley-rank that runs on it: "2.11.0"; empty = not known
  CardDescription card;  // of kind cuda

  friend bool operator==(const DeviceDescription&, const DeviceDescription&) = default;
};

// Whether a plan for one is a plan for the other: all but how a card is just now, what others hold of it and what is wrong with
// it though it computes. Those change by the minute where somebody's desktop or notebook is on the card.
bool IsSameToPlan(const DeviceDescription& a, const DeviceDescription& b);

}  // namespace motley
