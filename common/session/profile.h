// What the profiler measures and the planner reads. Plain values; stored by the coordinator under their digest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace motley {

struct ComputePoint {
  int64_t microbatch = 0;       // samples
  double forward_seconds = 0;   // of a head an evaluation's: a step's computes nothing (common/model/operators.h)
  double backward_seconds = 0;  // input and weight gradients, without recomputation
  int64_t saved_bytes = 0;      // kept from forward to backward, the unit's input included
  int64_t workspace_bytes = 0;  // peak beyond saved tensors, output and parameter buffers
  // Of the backward as two instructions, for the input and for the weights. Both 0: not measured.
  double backward_input_seconds = 0, backward_weight_seconds = 0;
  // Of the part (UnitProfile), run as a tensor-parallel rank runs it, segment by segment. Both 0: not measured.
  double part_forward_seconds = 0, part_backward_seconds = 0;
  // Of workspace_bytes, what the forward takes for itself when all that it keeps is there: what kernels copy and pack.
  int64_t forward_workspace_bytes = 0;
};

struct UnitProfile {
  std::vector<ComputePoint> points;  // ascending microbatch, at least two
  double part = 0;                   // of the unit's heads, columns and rows, below 1; 0: no part was measured
};

// How a card was while its units were measured, at the end of its largest load; a number that it did not say is 0.
struct CardLoad {
  int64_t sm_clock_mhz = 0;
  double watts = 0;
  int64_t power_limit_watts = 0;
  // What held its clocks down.
  bool at_power_limit = false, slowed_by_heat = false, slowed_by_hardware = false;
  friend bool operator==(const CardLoad&, const CardLoad&) = default;
};

// Two steps of the model, or some of its layers, by a rank alone that has the device's memory to itself.
struct MemoryTrial {
  int64_t samples = 0;     // in one microbatch
  double seconds = 0;      // of the second step; 0: it ran out of memory
  int64_t peak_bytes = 0;  // in that step
  friend bool operator==(const MemoryTrial&, const MemoryTrial&) = default;
};
// 0: none ran.
int64_t LargestThatRan(const std::vector<MemoryTrial>& trials);

struct ComputeProfile {
  DeviceId device;
  std::string digest;  // of everything it depends on
  UnitProfile embedding, layer, head;
  double optimizer_seconds_per_element = 0;
  double step_overhead_seconds = 0;  // per step, beyond instructions
  // What it holds before a plan's first tensor: tables; on a card also what the driver and libraries have beside the allocator.
  int64_t context_bytes = 0;
  // Of its memory, what plans may count on since a rank on it ran out (coordinator/epoch/memory_limits.h); 0: all of it.
  int64_t usable_bytes = 0;
  int memory_corrections = 0;  // so often it became less
  // Of the newest probe of its memory, in their order, and of how many layers (docs/inside/profiles.md, "Probing"); else none.
  std::vector<MemoryTrial> trials;
  int64_t trial_layers = 0;
  double profile_seconds = 0;  // what measuring it took
  std::string attention;       // the kernel that layers' attention ran on: "cudnn", "flash", "host flash", ...
  CardLoad load;               // of a card
  bool cut_short = false;      // the time that a card has for it was over before all was measured (docs/inside/profiles.md)
};

struct CollectivePoint {
  int64_t bytes = 0;  // of the whole assembled array
  double skew = 0;    // the largest share: 1/n = even, 1 = one owner
  double all_gather_seconds = 0;
  double reduce_scatter_seconds = 0;
};

// Hand-overs from one device to another, no one else about: bytes take latency_seconds + bytes / bytes_per_second.
struct MeasuredLink {
  int from = 0, to = 0;  // ranks
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// Of one card: how many times longer its work takes beside the other kind, at least 1 (docs/inside/profiles.md).
struct Overlap {
  double compute = 1;      // beside a collective of all
  double collectives = 1;  // beside a layer's passes
};

struct CollectiveProfile {
  std::vector<DeviceId> devices;  // by rank
  std::string digest;
  std::vector<CollectivePoint> points;
  std::vector<MeasuredLink> links;  // both ways between nodes and inside them (docs/inside/profiles.md); empty: not measured
  double barrier_seconds = 0;       // reducing a few scalars
  double profile_seconds = 0;
  std::vector<Overlap> overlap;  // by rank; empty: not measured
};

// Digest of all that a compute profile depends on: device with its emulation numbers, its card's driver and libtorch, model
// shape, sequence, dtype, build.
struct ModelShape;
struct DeviceDescription;
enum class DType;
std::string ComputeProfileDigest(const DeviceDescription& device, const ModelShape& shape, int64_t seq_len, DType dtype);
// Collectives depend on the set of devices in ring order, their NCCL and links, and the largest unit.
std::string CollectiveProfileDigest(const std::vector<DeviceDescription>& devices, const ModelShape& shape, DType dtype);

}  // namespace motley
