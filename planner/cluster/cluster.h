// A cluster as the offline planner sees it: nodes, devices and the links between them. A plain value.
// docs/use/clusters.md has the file's grammar.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/device/card_parts.h"
#include "common/device/device.h"
#include "common/device/device_ranges.h"
#include "common/session/profile.h"

namespace motley::planner {

// How NCCL on a card reaches the other cards of its node, at best; kNone: the card does without NCCL, or no other card has the
// same.
enum class NcclPath { kNone, kHost, kPcie, kNvlink };
inline constexpr std::array<const char*, 4> kNcclPathNames = {"none", "host", "pcie", "nvlink"};  // by NcclPath

// One model of card. Numbers are of the data sheet (common/device/device_table.h) unless the cluster's file gave its own.
struct CardKind {
  std::string name;                                                       // "A6000"
  double fp32_flops = 0, tf32_flops = 0, fp16_flops = 0, bf16_flops = 0;  // dense peaks a second; 0 = no such unit
  int64_t memory_bytes = 0;
  double memory_bytes_per_second = 0;
  // The data sheet's for the job's type, where the rates above were measured in its place; 0: they are the data sheet's.
  double peak_flops = 0;
  bool peak_known = true;           // false: the rates are measured, and nobody says what they could be: of a CPU
  std::string card = {};            // what is sold, where several of it were measured apart: "L4" of "L4-2"; empty: the name
  NcclPath nccl = NcclPath::kNone;  // of a live cluster; in a file where it says so
  bool launches_ahead = true;       // its host, of what it computes; what is emulated or a CPU computes when it is told to
  CardParts parts = {};             // of the rates above, where nobody measured
  friend bool operator==(const CardKind&, const CardKind&) = default;
};

struct ClusterDevice {
  DeviceId id;   // "n1/gpu0"
  int kind = 0;  // into Cluster::kinds
  int node = 0;  // into Cluster::nodes
};

// Two devices of a node whose link is slower than their node's device links say: PCIe where others have NVLink.
struct DevicePair {
  int a = 0, b = 0;  // into Cluster::devices, a < b
  double bytes_per_second = 0;
  double latency_seconds = 0;
  friend bool operator==(const DevicePair&, const DevicePair&) = default;
};

// What a node's cards reach each other by.
struct CardLinks {
  double bytes_per_second = 0, collective_part = 1, hidden_part = 1;  // as ClusterNode has them
};

struct ClusterNode {
  NodeName name;
  int region = 0;                           // into Cluster::regions
  std::vector<int> devices;                 // into Cluster::devices, ascending
  double device_link_bytes_per_second = 0;  // each device's own link, each direction: NVLink or PCIe
  double device_link_latency_seconds = 0;
  // Of the device links: the part that a collective reaches, and of a collective's time the part that costs compute beside it
  // nothing. Below 1 where the link is the data sheet's.
  double collective_part = 1, hidden_part = 1;
  std::optional<CardLinks> beside_another;  // of a card that is alone: the links that it would have with a second one, if others
  double nic_bytes_per_second = 0;          // each direction, shared by the node's devices; 0 = the node has no network
  double nic_latency_seconds = 0;
  int64_t host_memory_bytes = 0;          // for offload; 0 = not known, offload is not planned
  double host_link_bytes_per_second = 0;  // a device to host memory (PCIe), each direction
  // Devices that share one PCIe root: they share host_link_bytes_per_second. Empty: every device has its own.
  std::vector<std::vector<int>> pcie_roots;
  std::vector<DevicePair> slow_pairs;  // ascending
  double price_per_hour = 0;           // of the whole node; 0 = not known
};

void SetCardLinks(const CardLinks& links, ClusterNode* node);

// How the devices of a job are called, with its id behind it.
inline constexpr char kClusterOfJob[] = "cluster-of-";

struct Cluster {
  std::string name;
  std::string file;             // the path that it was read from, where the file gives another name
  std::vector<CardKind> kinds;  // distinct
  std::vector<ClusterNode> nodes;
  std::vector<ClusterDevice> devices;  // in the order of nodes
  std::vector<std::string> regions;    // at least one
  // Between two nodes, where known: bytes a second and seconds [a][b], symmetric. Empty: the smaller NIC decides.
  std::vector<std::vector<double>> node_bytes_per_second;
  std::vector<std::vector<double>> node_latency_seconds;
  // Between regions: what all traffic from one to the other shares. Empty: regions do not matter.
  std::vector<std::vector<double>> region_bytes_per_second;
  std::vector<std::vector<double>> region_latency_seconds;
  // As measured among all devices together; without points: not measured, the links say it.
  CollectiveProfile collectives;
  // Part of communication that hides behind independent computation when both are in flight: 1 = all of it.
  double overlap_efficiency = 1;
  // Part of a link's rate that a collective reaches.
  double collective_efficiency = 1;
  // Usable part of a card's memory (0.8 when reproducing Cephalo).
  double usable_memory = 1 - kDefaultMemoryReserve;
  std::vector<std::string> notes;  // what a source leaves open or contradicts

  double FlopsPerSecond(int kind, DType dtype) const;  // fp32's where the card has no such unit
  double PeakFlops(int kind, DType dtype) const;       // what a utilization is a part of; 0: nobody knows
  double price_per_hour() const;
};

// What Validate takes for a slip in the unit, beside the ranges of devices.
inline constexpr double kMostMemoryRate = 1e14;   // bytes a second, of a card's memory
inline constexpr double kMostCardNicRate = 1e11;  // bytes a second, of one card's NIC: the fastest that are sold have 800 Gbit/s
inline constexpr double kMostAttentionTokens = 1e6, kMostDeviation = 2;

// Sizes, rates, symmetry, indices. INVALID_ARGUMENT names node or device, field and remedy.
absl::Status Validate(const Cluster& cluster);

// The cluster restricted to these devices (ascending indices); nodes without devices go, and with them their price.
Cluster Restrict(const Cluster& cluster, const std::vector<int>& devices);

// For people who would buy one: "L4", and of those measured apart "L4 like n2/gpu0".
std::string KindText(const Cluster& cluster, int kind);
// In a sentence: "cluster mixed", "cluster of job j".
std::string ClusterInWords(const Cluster& cluster);

}  // namespace motley::planner
