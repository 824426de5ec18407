// Ordinary machine rooms, as starting points for a file of one's own.
#include "planner/cluster/presets/cluster_presets.h"

namespace motley::planner {
namespace {

constexpr ClusterPreset kLabClusters[] = {
    {"two-4090", "A desktop with two RTX 4090", R"toml(
name = "two-4090"

[[node]]
name = "desk"
gpus = [{card = "RTX-4090", count = 2}]
# Two slots share the lanes (PCIe 4.0 x8 each), and what passes the host's memory reaches a quarter.
device_link_gb_per_second = 3.9
host_memory_gib = 128
host_link_gb_per_second = 15.75
)toml"},
    {"a6000-l4-p40", "A lab over the years: A6000, L4, P40 and P100 in three machines, 10 Gbit/s", R"toml(
name = "a6000-l4-p40"

[defaults]
nic_gbit_per_second = 10
host_memory_gib = 128

[[node]]
name = "n1"
gpus = ["A6000", "L4"]

[[node]]
name = "n2"
gpus = [{card = "P40", count = 2}]

[[node]]
name = "n3"
gpus = ["P100"]
)toml"},
    {"eight-h100", "A node of 8 H100 SXM (p5.48xlarge)", R"toml(
name = "eight-h100"
notes = ["Price: AWS on-demand list, us-east-1, 2024."]

[[node]]
name = "n1"
gpus = [{card = "H100", count = 8}]
nic_gbit_per_second = 3200
host_memory_gib = 2048
usd_per_hour = 98.32
)toml"},
    {"h200-and-a100", "A new node of 8 H200 beside two older ones of 8 A100 40 GB, 200 Gbit/s", R"toml(
name = "h200-and-a100"

[defaults]
nic_gbit_per_second = 200
host_memory_gib = 1024

[[node]]
name = "new"
gpus = [{card = "H200", count = 8}]

[[node]]
name = "old"
count = 2
gpus = [{card = "A100-40GB", count = 8}]
)toml"},
    {"gaming-lab", "A teaching lab: 4 RTX 3090, 4 RTX 2080 Ti, 2 Titan RTX in three machines, 1 Gbit/s", R"toml(
name = "gaming-lab"

[defaults]
nic_gbit_per_second = 1
nic_latency_us = 100
host_memory_gib = 64

[[node]]
name = "n1"
gpus = [{card = "RTX-3090", count = 4}]
pcie_roots = [[0, 1], [2, 3]]

[[node]]
name = "n2"
gpus = [{card = "RTX-2080-Ti", count = 4}]
pcie_roots = [[0, 1], [2, 3]]

[[node]]
name = "n3"
gpus = [{card = "Titan-RTX", count = 2}]
)toml"},
};

}  // namespace

std::span<const ClusterPreset> LabClusters() { return kLabClusters; }

}  // namespace motley::planner
