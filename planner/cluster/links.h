// The cluster's links as shared resources, and what transfers load on them. Full duplex: each direction is its own resource.
//
//   device out/in   a device's own link, inside the node
//   nic out/in      of a node, shared by its devices
//   pair            two nodes' measured rate, where the cluster gives a matrix
//   region          from one region to another, shared by all
//   host            a device (or PCIe root) to host memory and back
//
// Immutable after construction, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/cluster/cluster.h"

namespace motley::planner {

struct LinkLoad {
  int resource = 0;
  double bytes = 0;
};
// A transfer in flight: done when all loads have been carried; alone it takes latency + max bytes / capacity.
struct Flow {
  double latency_seconds = 0;
  std::vector<LinkLoad> loads;  // ascending resource, distinct
};

enum class Collective { kAllGather, kReduceScatter, kAllReduce };

class Links {
 public:
  explicit Links(const Cluster& cluster);

  int num_resources() const { return static_cast<int>(capacity_.size()); }
  double Capacity(int resource) const { return capacity_[static_cast<size_t>(resource)]; }  // bytes a second
  const std::string& Name(int resource) const { return names_[static_cast<size_t>(resource)]; }

  Flow PointToPoint(int from, int to, double bytes) const;
  // `bytes`: the whole array (all-gather: assembled; reduce-scatter, all-reduce: of each rank's input). `shares` by device
  // of `devices`, adding up to 1; empty = even. A ring through the devices in node order: the hop into device i carries all but
  // i's share. Between nodes a ring of n nodes crosses each NIC once each way. One device: no load.
  Flow Ring(Collective collective, std::span<const int> devices, double bytes, std::span<const double> shares = {}) const;
  Flow ToHost(int device, double bytes) const;
  Flow FromHost(int device, double bytes) const;

  // Several flows of one kind at once as one flow: loads add up, latency is the largest.
  static Flow Together(std::span<const Flow> flows);
  double SecondsAlone(const Flow& flow) const;

  // Bytes a second between two devices, no one else about; what the graph partitions use as edge weight.
  double Rate(int from, int to) const;

 private:
  struct Hop { int out = -1, in = -1; };
  void AddPath(int from, int to, double bytes, Flow* flow) const;
  double Latency(int from, int to) const;
  int Add(std::string name, double capacity);

  const Cluster cluster_;
  std::vector<double> capacity_;
  std::vector<std::string> names_;
  std::vector<Hop> device_, nic_, host_;             // by device, node, device
  std::vector<std::vector<int>> pair_, region_;      // [a][b], -1 = none
};

}  // namespace motley::planner
