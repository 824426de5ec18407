#include "planner/cluster/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "planner/cluster/cluster_file.h"

namespace motley::planner {
namespace {

// Two nodes of two devices, 10 GB/s inside, 1 GB/s between; 100 us and 1 ms.
Cluster TwoNodes(const std::string& more = "") {
  absl::StatusOr<Cluster> cluster = ParseCluster(more + R"(
[defaults]
nic_gb_per_second = 1
nic_latency_us = 1000
device_link_gb_per_second = 10
device_link_latency_us = 100
host_link_gb_per_second = 5
host_memory_gib = 64
[[node]]
name = "a"
gpus = [{card = "T4", count = 2}]
[[node]]
name = "b"
gpus = [{card = "T4", count = 2}]
pcie_roots = [[0, 1]]
)",
                                                 "test");
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *cluster;
}

std::map<std::string, double> Loads(const Links& links, const Flow& flow) {
  std::map<std::string, double> loads;
  for (const LinkLoad& load : flow.loads) loads[links.Name(load.resource)] = load.bytes;
  return loads;
}

using Expected = std::map<std::string, double>;

TEST(Links, PointToPoint) {
  const Links links(TwoNodes());
  EXPECT_EQ(Loads(links, links.PointToPoint(0, 1, 100)), (Expected{{"a/gpu0 out", 100}, {"a/gpu1 in", 100}}));
  EXPECT_EQ(Loads(links, links.PointToPoint(1, 2, 100)),
            (Expected{{"a/gpu1 out", 100}, {"b/gpu0 in", 100}, {"NIC of a out", 100}, {"NIC of b in", 100}}));
  EXPECT_DOUBLE_EQ(links.PointToPoint(0, 1, 100).latency_seconds, 1e-4);
  EXPECT_DOUBLE_EQ(links.SecondsAlone(links.PointToPoint(1, 2, 1e9)), 1e-3 + 1);
  EXPECT_TRUE(links.PointToPoint(1, 1, 100).loads.empty());
  EXPECT_DOUBLE_EQ(links.Rate(0, 1), 10e9);
  EXPECT_DOUBLE_EQ(links.Rate(0, 3), 1e9);
}

// NVLink by two, and a slow way between the pairs.
TEST(Links, DevicesThatAreSlowerThanTheirOwnLinks) {
  Cluster cluster = *ParseCluster(R"(
[[node]]
name = "a"
gpus = [{card = "T4", count = 4}]
device_link_gb_per_second = 10
device_link_latency_us = 5
)",
                                  "test");
  const Links alike(cluster);
  cluster.nodes[0].slow_pairs = {{0, 2, 1e9, 2e-5}, {0, 3, 1e9, 2e-5}, {1, 2, 1e9, 2e-5}, {1, 3, 1e9, 2e-5}};
  ASSERT_TRUE(Validate(cluster).ok()) << Validate(cluster);
  const Links links(cluster);
  EXPECT_DOUBLE_EQ(links.Rate(0, 1), 10e9);
  EXPECT_DOUBLE_EQ(links.Rate(2, 3), 10e9);
  EXPECT_DOUBLE_EQ(links.Rate(3, 0), 1e9);
  EXPECT_EQ(Loads(links, links.PointToPoint(0, 1, 100)), Loads(alike, alike.PointToPoint(0, 1, 100)));
  EXPECT_EQ(Loads(links, links.PointToPoint(2, 1, 100)),
            (Expected{{"a/gpu1 in", 100}, {"a/gpu2 out", 100}, {"a/gpu2 to a/gpu1", 100}}));
  EXPECT_DOUBLE_EQ(links.PointToPoint(0, 1, 1).latency_seconds, 5e-6);
  EXPECT_DOUBLE_EQ(links.PointToPoint(1, 2, 1).latency_seconds, 2e-5);
  // A ring of all goes over the slow way twice, a ring of two that are near does not.
  const std::vector<int> all = {0, 1, 2, 3}, near = {2, 3};
  EXPECT_NEAR(links.SecondsAlone(links.Ring(Collective::kAllGather, all, 4e9)), 3, 1e-3);
  EXPECT_NEAR(links.SecondsAlone(links.Ring(Collective::kAllGather, near, 4e9)), 0.2, 1e-3);
}

// Every hop carries all but the receiver's part when gathering, all but the sender's when reducing.
TEST(Links, RingOfFourEven) {
  const Links links(TwoNodes());
  const std::vector<int> all = {0, 1, 2, 3};
  for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
    const Flow flow = links.Ring(collective, all, 400);
    for (const auto& [name, bytes] : Loads(links, flow)) EXPECT_DOUBLE_EQ(bytes, 300) << name;
    EXPECT_EQ(flow.loads.size(), 12u);                          // 4 devices and 2 NICs, each way
    EXPECT_NEAR(flow.latency_seconds, 2 * 1e-3 + 1e-4, 1e-12);  // 3 of the hops: 2 between nodes, 1 inside
  }
  const Flow reduce = links.Ring(Collective::kAllReduce, all, 400);
  for (const auto& [name, bytes] : Loads(links, reduce)) EXPECT_DOUBLE_EQ(bytes, 600) << name;
  EXPECT_NEAR(reduce.latency_seconds, 2 * (2 * 1e-3 + 1e-4), 1e-12);
}

TEST(Links, RingOfUnevenShares) {
  const Links links(TwoNodes());
  const std::vector<int> two = {0, 2};
  const std::vector<double> shares = {0.75, 0.25};
  EXPECT_EQ(Loads(links, links.Ring(Collective::kAllGather, two, 100, shares)), (Expected{{"a/gpu0 out", 75},
                                                                                          {"b/gpu0 in", 75},
                                                                                          {"NIC of a out", 75},
                                                                                          {"NIC of b in", 75},
                                                                                          {"b/gpu0 out", 25},
                                                                                          {"a/gpu0 in", 25},
                                                                                          {"NIC of b out", 25},
                                                                                          {"NIC of a in", 25}}));
  EXPECT_EQ(Loads(links, links.Ring(Collective::kReduceScatter, two, 100, shares)), (Expected{{"a/gpu0 out", 25},
                                                                                              {"b/gpu0 in", 25},
                                                                                              {"NIC of a out", 25},
                                                                                              {"NIC of b in", 25},
                                                                                              {"b/gpu0 out", 75},
                                                                                              {"a/gpu0 in", 75},
                                                                                              {"NIC of b out", 75},
                                                                                              {"NIC of a in", 75}}));
}

// The time of an all-gather is docs/inside/collectives.md's bound: the largest (P - s_i) / r.
TEST(Links, OneOwnerCostsNoMoreThanTheWholeArray) {
  const Links links(TwoNodes());
  const std::vector<int> inside = {0, 1};
  const std::vector<double> owner = {1, 0};
  EXPECT_EQ(Loads(links, links.Ring(Collective::kAllGather, inside, 100, owner)),
            (Expected{{"a/gpu0 out", 100}, {"a/gpu1 in", 100}}));  // and nothing back
  const std::vector<int> all = {0, 1, 2, 3};
  for (const std::vector<double>& shares : {std::vector<double>{0.25, 0.25, 0.25, 0.25}, {0.7, 0.1, 0.1, 0.1}, {0, 0, 1, 0}}) {
    const Flow flow = links.Ring(Collective::kAllGather, all, 1e9, shares);
    double least = 1;
    for (const double share : shares) least = std::min(least, share);
    EXPECT_LE(links.SecondsAlone(flow) - flow.latency_seconds, 1.0 * (1 - least) + 1e-12);  // the NICs' 1 GB/s
  }
}

// What devices send is what they receive, and a gather moves (n - 1) P in all.
TEST(Links, RingConserves) {
  const Links links(TwoNodes());
  const std::vector<int> all = {0, 1, 2, 3};
  const std::vector<double> shares = {0.4, 0.3, 0.2, 0.1};
  for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
    double in = 0, out = 0;
    for (const auto& [name, bytes] : Loads(links, links.Ring(collective, all, 100, shares))) {
      if (name.find("gpu") == std::string::npos) continue;
      (name.ends_with(" in") ? in : out) += bytes;
    }
    EXPECT_NEAR(in, 300, 1e-9);
    EXPECT_NEAR(out, 300, 1e-9);
  }
}

TEST(Links, RingDoesNotDependOnTheOrderOfDevices) {
  const Links links(TwoNodes());
  const std::vector<int> sorted = {0, 1, 2, 3}, mixed = {2, 0, 3, 1};
  const std::vector<double> shares = {0.4, 0.3, 0.2, 0.1}, mixed_shares = {0.2, 0.4, 0.1, 0.3};
  EXPECT_EQ(Loads(links, links.Ring(Collective::kAllReduce, sorted, 64, shares)),
            Loads(links, links.Ring(Collective::kAllReduce, mixed, 64, mixed_shares)));
}

TEST(Links, OneDeviceOrNothingLoadsNothing) {
  const Links links(TwoNodes());
  const std::vector<int> one = {2}, two = {0, 1};
  EXPECT_TRUE(links.Ring(Collective::kAllReduce, one, 100).loads.empty());
  EXPECT_EQ(links.SecondsAlone(links.Ring(Collective::kAllReduce, one, 100)), 0);
  EXPECT_TRUE(links.Ring(Collective::kAllGather, two, 0).loads.empty());
}

TEST(Links, CollectiveEfficiencySlowsCollectivesAlone) {
  const Links full(TwoNodes()), half(TwoNodes("collective_efficiency = 0.5\n"));
  const std::vector<int> all = {0, 1, 2, 3};
  EXPECT_DOUBLE_EQ(half.Ring(Collective::kAllGather, all, 100).loads[0].bytes,
                   2 * full.Ring(Collective::kAllGather, all, 100).loads[0].bytes);
  EXPECT_DOUBLE_EQ(half.PointToPoint(0, 2, 100).loads[0].bytes, 100);
}

TEST(Links, APartOfADeviceLinkIsWhatCollectivesReach) {
  Cluster cluster = TwoNodes();
  cluster.nodes[0].collective_part = 0.5;
  const Links links(cluster);
  const std::vector<int> first = {0, 1}, second = {2, 3};
  EXPECT_EQ(links.Ring(Collective::kAllGather, first, 100).loads[0].bytes, 100);
  EXPECT_EQ(links.Ring(Collective::kAllGather, second, 100).loads[0].bytes, 50);
  EXPECT_EQ(links.PointToPoint(0, 1, 100).loads[0].bytes, 100);
}

// A network's time beyond what the bytes take on the devices' links costs compute nothing.
TEST(Links, WhatHidesFollowsTheTier) {
  Cluster cluster = TwoNodes();
  EXPECT_TRUE(Links(cluster).everything_hides());
  cluster.nodes[0].hidden_part = 0.4;
  const Links links(cluster);
  const std::vector<int> first = {0, 1}, second = {2, 3}, all = {0, 1, 2, 3};
  EXPECT_FALSE(links.everything_hides());
  EXPECT_DOUBLE_EQ(links.HiddenPart(first), 0.4);
  EXPECT_DOUBLE_EQ(links.HiddenPart(second), 1);
  EXPECT_DOUBLE_EQ(links.HiddenPart(all), 1 - 0.6 * 0.1) << "the network has a tenth of the links' rate";
  EXPECT_DOUBLE_EQ(links.Ring(Collective::kAllReduce, first, 100).hidden, 0.4);
  EXPECT_EQ(links.PointToPoint(0, 1, 100).hidden, 1);
  cluster.overlap_efficiency = 0.5;
  EXPECT_DOUBLE_EQ(Links(cluster).HiddenPart(first), 0.2);
  EXPECT_DOUBLE_EQ(Links(cluster).HiddenPart(second), 0.5);
}

TEST(Links, DevicesOfOnePcieRootShareIt) {
  const Links links(TwoNodes());
  EXPECT_NE(links.ToHost(0, 10).loads[0].resource, links.ToHost(1, 10).loads[0].resource);
  EXPECT_EQ(links.ToHost(2, 10).loads[0].resource, links.ToHost(3, 10).loads[0].resource);
  EXPECT_NE(links.ToHost(2, 10).loads[0].resource, links.FromHost(2, 10).loads[0].resource);
  EXPECT_DOUBLE_EQ(links.Capacity(links.FromHost(2, 10).loads[0].resource), 5e9);
}

TEST(Links, TogetherAddsLoads) {
  const Links links(TwoNodes());
  const std::vector<Flow> flows = {links.PointToPoint(0, 2, 100), links.PointToPoint(1, 3, 50), links.PointToPoint(0, 1, 7)};
  const Flow sum = Links::Together(flows);
  EXPECT_EQ(Loads(links, sum)["NIC of a out"], 150);
  EXPECT_EQ(Loads(links, sum)["a/gpu0 out"], 107);
  EXPECT_DOUBLE_EQ(sum.latency_seconds, 1e-3);
  for (size_t i = 1; i < sum.loads.size(); ++i) EXPECT_LT(sum.loads[i - 1].resource, sum.loads[i].resource);
}

TEST(Links, APairSlowerThanTheCardsIsItsOwnLink) {
  const Links links(TwoNodes("[[link]]\nnodes = [\"a\", \"b\"]\ngb_per_second = 0.5\nlatency_us = 5000\n"));
  EXPECT_DOUBLE_EQ(links.Rate(0, 2), 0.5e9);
  EXPECT_EQ(Loads(links, links.PointToPoint(0, 2, 9)).count("a to b"), 1u);
  EXPECT_DOUBLE_EQ(links.PointToPoint(0, 2, 9).latency_seconds, 5e-3);
  const Links fast(TwoNodes("[[link]]\nnodes = [\"a\", \"b\"]\ngb_per_second = 2\n"));
  EXPECT_DOUBLE_EQ(fast.Rate(0, 2), 1e9);
  EXPECT_EQ(Loads(fast, fast.PointToPoint(0, 2, 9)).count("a to b"), 0u);
}

// Two regions of two nodes of four devices: 10 us in a node, 1 ms in a region, 30 ms between them.
TEST(Links, ATreeGoesTheLongestWaysLeastOften) {
  std::string text = "[defaults]\nnic_gb_per_second = 1\nnic_latency_us = 1000\ndevice_link_latency_us = 10\n";
  for (const char* name : {"w1", "e1", "w2", "e2"}) {
    text += std::string("[[node]]\nname = \"") + name + "\"\nregion = \"" + name[0] +
            "\"\ngpus = [{card = \"T4\", count = 4}]\ndevice_link_gb_per_second = 10\n";
  }
  const auto cluster =
      ParseCluster(text + "[[region_link]]\nregions = [\"w\", \"e\"]\ngb_per_second = 0.1\nlatency_us = 30000\n", "test");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Links links(*cluster);
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_DOUBLE_EQ(links.TreeSeconds(all), 2 * (2 * 10e-6 + 1e-3 + 30e-3));
  std::reverse(all.begin(), all.end());
  EXPECT_DOUBLE_EQ(links.TreeSeconds(all), 2 * (2 * 10e-6 + 1e-3 + 30e-3)) << "whatever their order";
  EXPECT_DOUBLE_EQ(links.TreeSeconds(std::vector<int>{0, 1, 2}), 2 * 2 * 10e-6) << "in one node, three devices";
  EXPECT_DOUBLE_EQ(links.TreeSeconds(std::vector<int>{0, 8}), 2 * 1e-3) << "one device of two nodes of a region";
  EXPECT_EQ(links.TreeSeconds(std::vector<int>{5}), 0);
  EXPECT_EQ(links.TreeSeconds({}), 0);
}

// Nodes of two regions in turn: the ring still crosses the border once each way.
TEST(Links, RingCrossesARegionBorderOnce) {
  std::string text = "[defaults]\nnic_gb_per_second = 1\n";
  for (const char* name : {"w1", "e1", "w2", "e2"}) {
    text += std::string("[[node]]\nname = \"") + name + "\"\nregion = \"" + name[0] + "\"\ngpus = [\"T4\"]\n";
  }
  const absl::StatusOr<Cluster> cluster =
      ParseCluster(text + "[[region_link]]\nregions = [\"w\", \"e\"]\ngb_per_second = 0.1\n", "test");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Links links(*cluster);
  const std::vector<int> all = {0, 1, 2, 3};
  auto loads = Loads(links, links.Ring(Collective::kAllGather, all, 400));
  EXPECT_DOUBLE_EQ(loads["region w to e"], 300);
  EXPECT_DOUBLE_EQ(loads["region e to w"], 300);
  EXPECT_DOUBLE_EQ(links.Rate(0, 1), 0.1e9);
  EXPECT_DOUBLE_EQ(links.Rate(0, 2), 1e9);
}

}  // namespace
}  // namespace motley::planner
