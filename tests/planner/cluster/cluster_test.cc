#include "planner/cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "planner/cluster/cluster_file.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

Cluster Lab() {
  absl::StatusOr<Cluster> cluster = LoadCluster("gaming-lab");
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *std::move(cluster);
}

void ExpectRefused(const Cluster& cluster, const std::string& why) {
  const absl::Status status = Validate(cluster);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

// A cluster made by a program goes through the same rules as one from a file.
TEST(Cluster, ValidateNamesWhatIsWrong) {
  EXPECT_TRUE(Validate(Lab()).ok());
  ExpectRefused(Cluster(), "the cluster has no devices");
  Cluster c = Lab();
  c.nodes[1].nic_bytes_per_second = -1;
  ExpectRefused(c, "node n2: NIC is -1");
  c = Lab();
  c.nodes[1].nic_bytes_per_second = 0;
  ExpectRefused(c, "no link between nodes n1 and n2");
  c = Lab();
  c.nodes[0].device_link_bytes_per_second = std::nan("");
  ExpectRefused(c, "node n1: device link is nan");
  c = Lab();
  c.nodes[0].device_link_latency_seconds = -1e-6;
  ExpectRefused(c, "latency");
  for (const DevicePair& wrong : {DevicePair{0, 1, 0, 0}, DevicePair{1, 0, 1e9, 0}, DevicePair{0, 5, 1e9, 0}}) {
    c = Lab();
    c.nodes[0].slow_pairs = {wrong};
    ExpectRefused(c, "link");
  }
  c = Lab();
  c.nodes[0].slow_pairs = {{0, 1, 1e9, 0}, {0, 1, 1e9, 0}};
  ExpectRefused(c, "is there twice");
  c = Lab();
  c.kinds[0].memory_bytes = 0;
  ExpectRefused(c, "card RTX-3090: memory_bytes is 0");
  c = Lab();
  c.kinds[1].name = c.kinds[0].name;
  ExpectRefused(c, "is there twice");
  c = Lab();
  c.nodes[2].name = c.nodes[0].name;
  ExpectRefused(c, "two nodes have this name");
  c = Lab();
  c.nodes[2].devices.clear();
  ExpectRefused(c, "node n3: has no devices");
  c = Lab();
  c.devices[3].kind = 7;
  ExpectRefused(c, "device n1/gpu3: its card does not exist");
  c = Lab();
  c.devices[3].id = c.devices[2].id;
  ExpectRefused(c, "must be given and distinct");
  c = Lab();
  c.nodes[0].region = 4;
  ExpectRefused(c, "its region does not exist");
  c = Lab();
  c.nodes[0].host_link_bytes_per_second = 0;
  ExpectRefused(c, "has host memory but no host link");
  c = Lab();
  c.node_bytes_per_second = {{0, 1e9, 1e9}, {2e9, 0, 1e9}, {1e9, 1e9, 0}};
  ExpectRefused(c, "make it symmetric");
  c = Lab();
  c.usable_memory = 1.5;
  ExpectRefused(c, "usable_memory");
  c = Lab();
  c.collective_efficiency = 0;
  ExpectRefused(c, "collective_efficiency");
}

TEST(Cluster, FlopsFallBackToFloat32) {
  const Cluster c = Lab();  // 3090, 2080 Ti, Titan RTX
  EXPECT_DOUBLE_EQ(c.FlopsPerSecond(0, DType::kBFloat16), 71.2e12);
  EXPECT_DOUBLE_EQ(c.FlopsPerSecond(1, DType::kFloat16), 53.8e12);
  EXPECT_DOUBLE_EQ(c.FlopsPerSecond(1, DType::kBFloat16), 13.4e12);
  EXPECT_DOUBLE_EQ(c.FlopsPerSecond(1, DType::kFloat32), 13.4e12);
}

TEST(Cluster, RestrictRenumbersEverything) {
  Cluster c = Lab();
  c.nodes[0].price_per_hour = 1;
  c.nodes[1].price_per_hour = 2;
  c.nodes[2].price_per_hour = 4;
  c.node_bytes_per_second = {{0, 1e8, 2e8}, {1e8, 0, 3e8}, {2e8, 3e8, 0}};
  c.nodes[0].slow_pairs = {{0, 2, 1e9, 1e-5}, {1, 3, 2e9, 1e-5}};
  c.nodes[2].slow_pairs = {{8, 9, 3e9, 1e-5}};
  const Cluster rest = Restrict(c, {1, 2, 3, 8, 9});  // without n1/gpu0 and n2
  EXPECT_TRUE(Validate(rest).ok()) << Validate(rest);
  ASSERT_EQ(rest.nodes.size(), 2u);
  EXPECT_EQ(rest.devices[0].id, DeviceId("n1/gpu1"));
  EXPECT_EQ(rest.devices[4].id, DeviceId("n3/gpu1"));
  EXPECT_EQ(rest.nodes[1].devices, (std::vector<int>{3, 4}));
  EXPECT_EQ(rest.nodes[0].pcie_roots, (std::vector<std::vector<int>>{{0}, {1, 2}}));
  EXPECT_EQ(rest.nodes[0].slow_pairs, (std::vector<DevicePair>{{0, 2, 2e9, 1e-5}}));
  EXPECT_EQ(rest.nodes[1].slow_pairs, (std::vector<DevicePair>{{3, 4, 3e9, 1e-5}}));
  EXPECT_EQ(rest.kinds.size(), 2u);
  EXPECT_EQ(rest.kinds[rest.devices[3].kind].name, "Titan-RTX");
  EXPECT_DOUBLE_EQ(rest.node_bytes_per_second[0][1], 2e8);
  EXPECT_DOUBLE_EQ(rest.price_per_hour(), 5);
}

TEST(Cluster, RestrictDropsRegionsThatAreGone) {
  const Cluster c = *LoadCluster("zorse-c");
  std::vector<int> west;
  for (size_t d = 0; d < c.devices.size(); ++d) {
    if (c.nodes[c.devices[d].node].region == 1) west.push_back(static_cast<int>(d));
  }
  const Cluster rest = Restrict(c, west);
  EXPECT_TRUE(Validate(rest).ok()) << Validate(rest);
  EXPECT_EQ(rest.regions, std::vector<std::string>{"west"});
  EXPECT_EQ(rest.devices.size(), 64u);
}

TEST(Cluster, AKindMeasuredApartIsSaidByADevice) {
  Cluster cluster;
  cluster.kinds = {CardKind{.name = "L4"}, CardKind{.name = "L4-2", .card = "L4"}, CardKind{.name = "P40-2", .card = "P40"}};
  cluster.devices = {{DeviceId("a/gpu0"), 0, 0}, {DeviceId("b/gpu0"), 1, 1}, {DeviceId("b/gpu1"), 1, 1}};
  EXPECT_EQ(KindText(cluster, 0), "L4");
  EXPECT_EQ(KindText(cluster, 1), "L4 like b/gpu0");
  EXPECT_EQ(KindText(cluster, 2), "P40-2") << "none is left";
}

}  // namespace
}  // namespace motley::planner
