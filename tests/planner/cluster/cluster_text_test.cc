#include "planner/cluster/cluster_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cluster/cluster_file.h"
#include "tests/planner/cluster/parsed_cluster.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

void ExpectMatricesAlike(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a.size(); ++j) {
      if (i == j) continue;
      EXPECT_NEAR(a[i][j], b[i][j], 1e-12 * a[i][j]);
    }
  }
}

void ExpectPairsAlike(const std::vector<DevicePair>& a, const std::vector<DevicePair>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].a, b[i].a);
    EXPECT_EQ(a[i].b, b[i].b);
    EXPECT_DOUBLE_EQ(a[i].bytes_per_second, b[i].bytes_per_second);
    EXPECT_DOUBLE_EQ(a[i].latency_seconds, b[i].latency_seconds);
  }
}

void ExpectAlike(const Cluster& a, const Cluster& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.notes, b.notes);
  EXPECT_EQ(a.regions, b.regions);
  EXPECT_EQ(a.usable_memory, b.usable_memory);
  EXPECT_EQ(a.overlap_efficiency, b.overlap_efficiency);
  EXPECT_EQ(a.collective_efficiency, b.collective_efficiency);
  ASSERT_EQ(a.kinds.size(), b.kinds.size());
  for (size_t k = 0; k < a.kinds.size(); ++k) {
    EXPECT_EQ(a.kinds[k].name, b.kinds[k].name);
    EXPECT_EQ(a.kinds[k].memory_bytes, b.kinds[k].memory_bytes);
    EXPECT_EQ(a.kinds[k].parts, b.kinds[k].parts);
    EXPECT_EQ(a.kinds[k].launches_ahead, b.kinds[k].launches_ahead);
    EXPECT_EQ(a.kinds[k].nccl, b.kinds[k].nccl);
    EXPECT_DOUBLE_EQ(a.kinds[k].fp32_flops, b.kinds[k].fp32_flops);
    EXPECT_DOUBLE_EQ(a.kinds[k].bf16_flops, b.kinds[k].bf16_flops);
    EXPECT_DOUBLE_EQ(a.kinds[k].memory_bytes_per_second, b.kinds[k].memory_bytes_per_second);
  }
  ASSERT_EQ(a.devices.size(), b.devices.size());
  for (size_t d = 0; d < a.devices.size(); ++d) {
    EXPECT_EQ(a.devices[d].id, b.devices[d].id);
    EXPECT_EQ(a.devices[d].kind, b.devices[d].kind);
  }
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t n = 0; n < a.nodes.size(); ++n) {
    EXPECT_EQ(a.nodes[n].name, b.nodes[n].name);
    EXPECT_EQ(a.nodes[n].region, b.nodes[n].region);
    EXPECT_DOUBLE_EQ(a.nodes[n].nic_bytes_per_second, b.nodes[n].nic_bytes_per_second);
    EXPECT_DOUBLE_EQ(a.nodes[n].nic_latency_seconds, b.nodes[n].nic_latency_seconds);
    EXPECT_DOUBLE_EQ(a.nodes[n].device_link_bytes_per_second, b.nodes[n].device_link_bytes_per_second);
    EXPECT_DOUBLE_EQ(a.nodes[n].device_link_latency_seconds, b.nodes[n].device_link_latency_seconds);
    EXPECT_DOUBLE_EQ(a.nodes[n].host_link_bytes_per_second, b.nodes[n].host_link_bytes_per_second);
    EXPECT_EQ(a.nodes[n].host_memory_bytes, b.nodes[n].host_memory_bytes);
    EXPECT_EQ(a.nodes[n].collective_part, b.nodes[n].collective_part);
    EXPECT_EQ(a.nodes[n].hidden_part, b.nodes[n].hidden_part);
    EXPECT_EQ(a.nodes[n].pcie_roots, b.nodes[n].pcie_roots);
    ExpectPairsAlike(a.nodes[n].slow_pairs, b.nodes[n].slow_pairs);
    EXPECT_EQ(a.nodes[n].price_per_hour, b.nodes[n].price_per_hour);
  }
  ExpectMatricesAlike(a.node_bytes_per_second, b.node_bytes_per_second);
  ExpectMatricesAlike(a.node_latency_seconds, b.node_latency_seconds);
  ExpectMatricesAlike(a.region_bytes_per_second, b.region_bytes_per_second);
  ExpectMatricesAlike(a.region_latency_seconds, b.region_latency_seconds);
}

TEST(ClusterText, EveryPresetIsReadBack) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    SCOPED_TRACE(preset.name);
    const Cluster cluster = Parsed(std::string(preset.toml));
    const std::string text = ToToml(cluster);
    ExpectAlike(cluster, Parsed(text));
    EXPECT_EQ(ToToml(Parsed(std::string(preset.toml))), text);
  }
}

TEST(ClusterText, LinksRootsAndNamesAreReadBack) {
  const Cluster cluster = Parsed(R"(name = "a \"b\""
notes = ["one", "two\nlines"]
usable_memory = 0.8
[[card]]
name = "tiny"
fp32_tflops = 0.0048
memory_gib = 0.6
memory_gb_per_second = 0.1
link_gb_per_second = 0.00394
launches_ahead = false
[[node]]
name = "x"
gpus = ["tiny", {card = "tiny", name = "cpu7"}, {card = "L4", count = 2}]
nic_gb_per_second = 1
host_memory_gib = 100
pcie_roots = [[0, 1], [2, 3]]
region = "north"
usd_per_hour = 1.5
[[node]]
name = "y"
gpus = ["L4"]
region = "south"
[[link]]
nodes = ["x", "y"]
gb_per_second = 0.3
latency_us = 7.7
[[device_link]]
devices = ["x/gpu2", "x/gpu0"]
gb_per_second = 2
[[device_link]]
devices = ["x/gpu0", "x/cpu7"]
gbit_per_second = 12
latency_us = 30
[[region_link]]
regions = ["north", "south"]
gbit_per_second = 3
)");
  ASSERT_EQ(cluster.devices[1].id.value(), "x/cpu7");
  EXPECT_FALSE(cluster.kinds[0].launches_ahead) << "as an emulated device's";
  EXPECT_EQ(cluster.devices[2].id.value(), "x/gpu2");
  const std::vector<DevicePair> pairs = {{0, 1, 1.5e9, 30e-6}, {0, 2, 2e9, cluster.nodes[0].device_link_latency_seconds}};
  ExpectPairsAlike(cluster.nodes[0].slow_pairs, pairs);
  ExpectAlike(cluster, Parsed(ToToml(cluster)));
  EXPECT_THAT(ToToml(cluster), HasSubstr(R"(gpus = ["tiny", {card = "tiny", name = "cpu7"}, {card = "L4", count = 2}])"));
}

}  // namespace
}  // namespace motley::planner
