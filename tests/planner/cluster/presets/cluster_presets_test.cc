#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "planner/cluster/cluster_file.h"
#include "tests/common/base/folders.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

std::map<std::string, int> CardsOf(const std::string& preset) {
  const absl::StatusOr<Cluster> cluster = LoadCluster(preset);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  std::map<std::string, int> cards;
  if (!cluster.ok()) return cards;
  for (const ClusterDevice& device : cluster->devices) ++cards[cluster->kinds[device.kind].name];
  return cards;
}

using Cards = std::map<std::string, int>;

// All that cannot be read are named, not the first alone.
TEST(ClusterPresets, EveryOneLoadsUnderItsName) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    const absl::StatusOr<Cluster> cluster = LoadCluster(std::string(preset.name));
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    if (!cluster.ok()) continue;
    EXPECT_EQ(cluster->name, preset.name);
    EXPECT_EQ(Validate(*cluster), absl::OkStatus()) << preset.name;
  }
}

TEST(ClusterPresets, EveryFileIsEmbeddedAsItIs) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(SourceFolder() + "/planner/cluster/presets")) {
    files.insert(entry.path().string());
  }
  for (const ClusterPreset& preset : ClusterPresets()) {
    const std::string path = absl::StrCat(SourceFolder(), "/planner/cluster/presets/", std::string(preset.name), ".toml");
    EXPECT_EQ(files.erase(path), 1u) << path;
    EXPECT_EQ(*ReadSmallFile(path, kLargestClusterFileBytes),
              absl::StrCat("# ", std::string(preset.what), "\n", std::string(preset.toml)));
  }
  EXPECT_EQ(files, std::set<std::string>()) << "no preset is of these";
}

// As they are listed: those of the papers, then rooms to begin a file of one's own with.
TEST(ClusterPresets, AreInTheOrderOfTheList) {
  ASSERT_EQ(ClusterPresets().size(), 25u);
  EXPECT_EQ(ClusterPresets().front().name, "cephalo-a");
  EXPECT_EQ(ClusterPresets()[20].name, "two-4090");
  EXPECT_EQ(ClusterPresets().back().name, "gaming-lab");
}

// Reference: Cephalo section 4.1.
TEST(ClusterPresets, Cephalo) {
  EXPECT_EQ(CardsOf("cephalo-a"), (Cards{{"L4", 2}, {"A6000", 1}, {"P40", 3}, {"P100", 2}}));
  EXPECT_EQ(CardsOf("cephalo-b"), (Cards{{"A10G", 16}, {"V100-16GB", 16}, {"T4", 32}}));
  const Cluster a = *LoadCluster("cephalo-a");
  EXPECT_EQ(a.nodes.size(), 2u);
  EXPECT_DOUBLE_EQ(a.nodes[0].nic_bytes_per_second, 6.25e9);
  EXPECT_DOUBLE_EQ(a.usable_memory, 0.8);
  const Cluster b = *LoadCluster("cephalo-b");
  EXPECT_EQ(b.nodes.size(), 8u);
  EXPECT_EQ(b.nodes[2].name, NodeName("v100-1"));
  EXPECT_DOUBLE_EQ(b.nodes[2].nic_bytes_per_second, 3.125e9);  // AWS's 25 Gbit/s, not the paper's 100
  EXPECT_THAT(b.notes[0], HasSubstr("25 Gbit/s"));
  EXPECT_NEAR(b.price_per_hour(), 2 * 16.288 + 2 * 24.48 + 4 * 7.824, 1e-9);
}

// Reference: Zorse table 2; the FP16 totals that its table 3 implies.
TEST(ClusterPresets, Zorse) {
  EXPECT_EQ(CardsOf("zorse-a"), (Cards{{"H100-NVL", 4}, {"A100-80GB", 16}}));
  EXPECT_EQ(CardsOf("zorse-b"), (Cards{{"A100-40GB", 8}, {"A10G", 16}, {"V100-16GB", 16}, {"T4", 24}}));
  EXPECT_EQ(CardsOf("zorse-c"), (Cards{{"A10G", 16}, {"V100-16GB", 16}, {"T4", 96}}));
  const Cluster a = *LoadCluster("zorse-a");
  double tflops = 0;
  for (const ClusterDevice& device : a.devices) tflops += a.FlopsPerSecond(device.kind, DType::kFloat16) / 1e12;
  EXPECT_DOUBLE_EQ(tflops, 8332);
  EXPECT_NEAR(a.nodes[0].device_link_bytes_per_second / a.nodes[0].nic_bytes_per_second, 35, 0.1);
  const Cluster c = *LoadCluster("zorse-c");
  ASSERT_EQ(c.regions.size(), 2u);
  EXPECT_GT(c.region_bytes_per_second[0][1], 0);
  int east = 0;
  for (const ClusterNode& node : c.nodes) east += node.region == 0 ? static_cast<int>(node.devices.size()) : 0;
  EXPECT_EQ(east, 64);
}

// Reference: Poplar table 1, Baton section 3.
TEST(ClusterPresets, PoplarAndBaton) {
  EXPECT_EQ(CardsOf("poplar-a"), (Cards{{"A100-80GB", 4}, {"A100-PCIe-40GB", 4}}));
  EXPECT_EQ(CardsOf("poplar-b"), (Cards{{"V100-PCIe-16GB", 2}, {"T4", 2}}));
  EXPECT_EQ(CardsOf("poplar-c"), (Cards{{"A800-PCIe", 4}, {"V100S-32GB", 4}}));
  EXPECT_EQ(CardsOf("baton"), (Cards{{"A100-PCIe-40GB", 2}, {"T4", 2}}));
}

// Reference: HexiScale section 5.1, table 4.
TEST(ClusterPresets, Hexiscale) {
  EXPECT_EQ(CardsOf("hexiscale-1"), (Cards{{"RTX-3080-Ti", 8}, {"RTX-3090", 8}, {"RTX-4090", 24}}));
  EXPECT_EQ(CardsOf("hexiscale-2"), (Cards{{"RTX-3080-Ti", 8}, {"RTX-3090", 8}, {"RTX-4090", 8}, {"A800", 8}}));
  EXPECT_EQ(CardsOf("hexiscale-3"), (Cards{{"RTX-3090", 16}, {"RTX-4090", 32}, {"A800", 8}}));
  EXPECT_EQ(CardsOf("hexiscale-240"), (Cards{{"RTX-3090", 64}, {"RTX-4090", 160}, {"A800", 16}}));
  for (const int gpus : {64, 128, 192, 256, 320}) {
    EXPECT_EQ(LoadCluster("hexiscale-" + std::to_string(gpus))->devices.size(), static_cast<size_t>(gpus));
  }
  EXPECT_DOUBLE_EQ(LoadCluster("hexiscale-1")->nodes[0].nic_bytes_per_second, 0.7e9);
  EXPECT_DOUBLE_EQ(LoadCluster("hexiscale-1")->nodes[0].device_link_bytes_per_second, 24e9);
}

TEST(ClusterPresets, Labs) {
  EXPECT_EQ(CardsOf("two-4090"), (Cards{{"RTX-4090", 2}}));
  EXPECT_EQ(CardsOf("a6000-l4-p40"), (Cards{{"A6000", 1}, {"L4", 1}, {"P40", 2}, {"P100", 1}}));
  EXPECT_EQ(CardsOf("eight-h100"), (Cards{{"H100-SXM", 8}}));
  EXPECT_EQ(CardsOf("h200-and-a100"), (Cards{{"H200", 8}, {"A100-40GB", 16}}));
  EXPECT_EQ(CardsOf("gaming-lab"), (Cards{{"RTX-3090", 4}, {"RTX-2080-Ti", 4}, {"Titan-RTX", 2}}));
  EXPECT_DOUBLE_EQ(LoadCluster("eight-h100")->nodes[0].nic_bytes_per_second, 400e9);
  EXPECT_DOUBLE_EQ(LoadCluster("gaming-lab")->nodes[0].nic_latency_seconds, 1e-4);
  EXPECT_EQ(LoadCluster("gaming-lab")->nodes[1].pcie_roots, (std::vector<std::vector<int>>{{4, 5}, {6, 7}}));
}

TEST(ClusterPresets, UnknownNameSaysTheNearest) {
  const absl::Status status = LoadCluster("cefalo-a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean 'cephalo-a'?"));
}

}  // namespace
}  // namespace motley::planner
