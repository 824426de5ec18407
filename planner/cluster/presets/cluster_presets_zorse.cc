// Zorse (arXiv 2507.10392), section 5.1, table 2, section 5.2.
#include "planner/cluster/presets/cluster_presets.h"

namespace motley::planner {
namespace {

constexpr ClusterPreset kZorseClusters[] = {
    {"zorse-a", "Zorse cluster A: 4 H100 NVL and 16 A100 80 GB on Azure, 50 Gbit/s (table 2)", R"toml(
name = "zorse-a"
notes = [
  "That the H100 are NVL cards follows from table 2's total, 4 x 835 + 16 x 312 = 8332 TFLOP/s, and their 15 % more memory.",
  "Links inside the machines: section 5.2 calls the ratio to 50 Gbit/s 35-fold, so 219 GB/s (NVLink's list rate is 300).",
  "Prices: Azure list, pay as you go, East US, 2024 (NC80adis H100 v5, ND96amsr A100 v4).",
]

[defaults]
nic_gbit_per_second = 50
device_link_gb_per_second = 219

[[node]]
name = "h100"
count = 2
gpus = [{card = "H100-NVL", count = 2}]
host_memory_gib = 640
usd_per_hour = 13.96

[[node]]
name = "a100"
count = 2
gpus = [{card = "A100-80GB", count = 8}]
host_memory_gib = 1900
usd_per_hour = 32.77
)toml"},
    {"zorse-b", "Zorse cluster B: 64 GPUs of 4 kinds on AWS (table 2)", R"toml(
name = "zorse-b"
notes = [
  "Table 2 totals 8112 TFLOP/s; table 3's utilisation implies 7848, which is 8 x 312 + 16 x 125 + 16 x 112 + 24 x 65.",
  "So the paper counts an A10G at the A10's 125 TFLOP/s in fp16; the device table has 70.",
  "Links are not given: AWS's list for the machine types is used (p3.16xlarge 25 Gbit/s), and the card's own link inside.",
  "Section 5.2 speaks of Llama 33B's 40 layers; that model has 60 (the 13B has 40).",
  "Prices and host memory: AWS on-demand list, us-east-1, 2024.",
]

[[node]]
name = "a100"
gpus = [{card = "A100-40GB", count = 8}]   # p4d.24xlarge
nic_gbit_per_second = 400
host_memory_gib = 1152
usd_per_hour = 32.773

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
count = 3
gpus = [{card = "T4", count = 8}]   # g4dn.metal
nic_gbit_per_second = 100
host_memory_gib = 384
usd_per_hour = 7.824
)toml"},
    {"zorse-c", "Zorse cluster C: 128 GPUs of 3 kinds in two AWS regions (table 2, section 5.2)", R"toml(
name = "zorse-c"
notes = [
  "Table 2 totals 8240 TFLOP/s; table 3's utilisation implies 10033, which is 16 x 125 + 16 x 112 + 96 x 65.",
  "So the paper counts an A10G at the A10's 125 TFLOP/s in fp16; the device table has 70.",
  "Links are not given: AWS's list for the machine types is used.",
  "Between regions 50 Gbit/s (AWS lets a machine use half its 100 Gbit/s across regions) and 30 ms are assumed.",
  "The text's two 24-GPU groups of T4 per region match table 2's 12 machines.",
  "Prices and host memory: AWS on-demand list, us-east-1, 2024.",
]

[[node]]
name = "a10g"
count = 2
region = "east"
gpus = [{card = "A10G", count = 8}]   # g5.48xlarge
nic_gbit_per_second = 100
host_memory_gib = 768
usd_per_hour = 16.288

[[node]]
name = "t4-east"
count = 6
region = "east"
gpus = [{card = "T4", count = 8}]   # g4dn.metal
nic_gbit_per_second = 100
host_memory_gib = 384
usd_per_hour = 7.824

[[node]]
name = "v100"
count = 2
region = "west"
gpus = [{card = "V100-16GB", count = 8}]   # p3.16xlarge
nic_gbit_per_second = 25
host_memory_gib = 488
usd_per_hour = 24.48

[[node]]
name = "t4-west"
count = 6
region = "west"
gpus = [{card = "T4", count = 8}]   # g4dn.metal
nic_gbit_per_second = 100
host_memory_gib = 384
usd_per_hour = 7.824

[[region_link]]
regions = ["east", "west"]
gbit_per_second = 50
latency_us = 30000
)toml"},
};

}  // namespace

std::span<const ClusterPreset> ZorseClusters() { return kZorseClusters; }

}  // namespace motley::planner
