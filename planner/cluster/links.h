// The cluster's links as shared resources, and what transfers load on them. Full duplex: each direction is its own resource.
//
//   device out/in   a device's own link, inside the node
//   device pair     two devices of a node that are slower than their own links
//   nic out/in      of a node, shared by its devices
//   pair            two nodes' measured rate, where the cluster gives a matrix
//   region          from one region to another, shared by all
//   host            a device (or PCIe root) to host memory and back
//
// Immutable after construction, thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/cluster/cluster.h"
#include "planner/cluster/measured_collectives.h"

namespace motley::planner {

struct LinkLoad {
  int resource = 0;
  double bytes = 0;
};
// A transfer in flight: done when all loads have been carried; alone it takes latency + max bytes / capacity.
struct Flow {
  double latency_seconds = 0;
  std::vector<LinkLoad> loads;  // ascending resource, distinct
  double hidden = 1;            // the part of its time that costs compute beside it nothing
};

class Links {
 public:
  explicit Links(const Cluster& cluster);

  int num_resources() const { return static_cast<int>(capacity_.size()); }
  double Capacity(int resource) const { return capacity_[resource]; }  // bytes a second
  const std::string& Name(int resource) const { return names_[resource]; }

  Flow PointToPoint(int from, int to, double bytes) const;
  // `bytes`: the whole array (all-gather: assembled; reduce-scatter, all-reduce: of each rank's input). `shares` by device
  // of `devices`, adding up to 1; empty = even. A ring through the devices in node order: the hop into device i carries all but
  // i's share. Between nodes a ring of n nodes crosses each NIC once each way. One device: no load. Where all devices were
  // measured together, the ring of all takes what was measured, and a ring of some is longer or shorter by as much as all
  // devices' is there.
  Flow Ring(Collective collective, std::span<const int> devices, double bytes, std::span<const double> shares = {}) const;
  // Latency of an all-reduce of a few numbers: up a tree and down again, first inside every node, then between the nodes of every
  // region, then between regions, so that the longest ways are gone least often. Of all devices: what was measured, if anything.
  double TreeSeconds(std::span<const int> devices) const;
  // Largest shares at which the collectives of all devices were measured, ascending; empty: not measured.
  const std::vector<double>& measured_shares() const { return measured_.largest_shares(); }
  // The part of a collective among these that costs compute beside it nothing. It costs as long as its bytes take on the devices'
  // own links: what waits for a network beyond that takes no part of a device.
  double HiddenPart(std::span<const int> devices) const;
  double HiddenPartOfAll() const { return hidden_of_all_; }
  bool everything_hides() const { return everything_hides_; }
  Flow ToHost(int device, double bytes) const;
  Flow FromHost(int device, double bytes) const;

  // Several flows of one kind at once as one flow: loads add up, latency is the largest.
  static Flow Together(std::span<const Flow> flows);
  double SecondsAlone(const Flow& flow) const;

  // Bytes a second between two devices, no one else about; what the graph partitions use as edge weight.
  double Rate(int from, int to) const;

 private:
  struct Pair {  // resources, -1 = none
    int out = -1, in = -1;
  };
  struct SlowPair {
    int resource = -1;
    double latency_seconds = 0;
  };
  struct Node {
    int region = 0;
    double device_latency_seconds = 0, nic_latency_seconds = 0;
    int first_device = 0, num_devices = 0;
    double collective_part = 1, hidden_part = 1;
    double link_rate = 0, nic_rate = 0;  // of a collective; 0: no NIC
    std::vector<SlowPair> pairs;         // [from][to] of its devices; empty: none is slow
  };
  int Add(std::string name, double capacity);
  void AddNodes(const Cluster& cluster);
  void AddSlowPairs(const Cluster& cluster);
  // Of two devices of one node; null: their own links say all.
  const SlowPair* SlowPairOf(int from, int to) const;
  void AddHosts(const Cluster& cluster);
  void AddMatrices(const Cluster& cluster);
  double Latency(int from, int to) const;
  // Calls `add(resource)` for everything that a transfer loads on its way; ForBorders: for all but the devices' own links.
  template <typename Function>
  void ForPath(int from, int to, Function add) const;
  template <typename Function>
  void ForBorders(int from, int to, Function add) const;
  Flow ModelledRing(Collective collective, std::span<const int> devices, double bytes, std::span<const double> shares) const;
  // What a ring takes measured / modelled.
  double MeasuredFactor(Collective collective, double seconds, size_t devices, double bytes,
                        std::span<const double> shares) const;
  void AddMeasured(const Cluster& cluster);
  std::vector<int> RingOrder(std::span<const int> devices) const;

  std::vector<double> capacity_;
  std::vector<std::string> names_;
  double collective_efficiency_ = 1, overlap_efficiency_ = 1, hidden_of_all_ = 1;
  bool everything_hides_ = true;
  std::vector<Node> nodes_;
  std::vector<int> node_of_;                          // by device
  std::vector<Pair> device_, nic_, host_;             // by device, node, device
  std::vector<std::vector<int>> node_pair_, region_;  // [from][to], -1 = none; empty = no matrix
  std::vector<std::vector<double>> node_latency_, region_latency_;
  MeasuredCollectives measured_, modelled_;  // of all devices: the same points
  double measured_scalars_seconds_ = 0;
};

}  // namespace motley::planner
