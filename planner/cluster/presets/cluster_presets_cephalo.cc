// Cephalo (arXiv 2411.01075), section 4.1 and table 3.
#include "planner/cluster/presets/cluster_presets.h"

namespace motley::planner {
namespace {

constexpr ClusterPreset kCephaloClusters[] = {
    {"cephalo-a", "Cephalo cluster A: 8 GPUs of 4 kinds in 2 machines, 50 Gbit/s (section 4.1)", R"toml(
name = "cephalo-a"
usable_memory = 0.8
notes = [
  "Links inside the two machines are not given: PCIe x16 of each card is assumed.",
  "Host memory and prices are not given; the authors own the machines.",
]

[defaults]
nic_gbit_per_second = 50

[[node]]
name = "n1"
gpus = [{card = "L4", count = 2}, "A6000", "P40"]

[[node]]
name = "n2"
gpus = [{card = "P40", count = 2}, {card = "P100", count = 2}]
)toml"},
    {"cephalo-b", "Cephalo cluster B: 64 GPUs of 3 kinds in 8 AWS machines (section 4.1)", R"toml(
name = "cephalo-b"
usable_memory = 0.8
notes = [
  "The paper says 100 Gbit/s for all machines; AWS lists 25 Gbit/s for p3.16xlarge, which is used here.",
  "PCIe rates inside g5 and g4dn machines are not given: x16 of each card is assumed.",
  "Prices and host memory: AWS on-demand list, us-east-1, 2024.",
]

[[node]]
name = "a10g"
count = 2
gpus = [{card = "A10G", count = 8}]   # g5.48xlarge
nic_gbit_per_second = 100
host_memory_gib = 768
usd_per_hour = 16.288

[[node]]
name = "v100"
count = 2
gpus = [{card = "V100-16GB", count = 8}]   # p3.16xlarge
nic_gbit_per_second = 25
host_memory_gib = 488
usd_per_hour = 24.48

[[node]]
name = "t4"
count = 4
gpus = [{card = "T4", count = 8}]   # g4dn.metal
nic_gbit_per_second = 100
host_memory_gib = 384
usd_per_hour = 7.824
)toml"},
};

}  // namespace

std::span<const ClusterPreset> CephaloClusters() { return kCephaloClusters; }

}  // namespace motley::planner
