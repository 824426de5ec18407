// Poplar (AAAI'25, arXiv 2408.12596), table 1; Baton (EuroSys'25 poster), section 3.
#include "planner/cluster/presets/cluster_presets.h"

namespace motley::planner {
namespace {

constexpr ClusterPreset kPoplarAndBatonClusters[] = {
    {"poplar-a", "Poplar cluster A: 4 A100 80 GB (NVLink) and 4 A100 40 GB (PCIe) (table 1)", R"toml(
name = "poplar-a"
notes = [
  "Table 1 gives links inside only (its caption calls them Inter-Link); elsewhere the paper says that all ran on PCIe.",
  "Two machines are assumed, and between them 200 Gbit/s, about what a PCIe 4.0 card carries.",
]

[defaults]
nic_gbit_per_second = 200

[[node]]
name = "n1"
gpus = [{card = "A100-80GB", count = 4}]

[[node]]
name = "n2"
gpus = [{card = "A100-PCIe-40GB", count = 4}]
)toml"},
    {"poplar-b", "Poplar cluster B: 2 V100 16 GB and 2 T4, PCIe (table 1)", R"toml(
name = "poplar-b"
notes = ["One machine is assumed: the paper gives PCIe and no network. Its T4 16GB is 15 GiB to programs."]

[[node]]
name = "n1"
gpus = [{card = "V100-PCIe-16GB", count = 2}, {card = "T4", count = 2}]
)toml"},
    {"poplar-c", "Poplar cluster C: 4 A800 80 GB and 4 V100S 32 GB, PCIe (table 1)", R"toml(
name = "poplar-c"
notes = ["One machine is assumed: the paper gives PCIe and no network. All its links run at the slower card's PCIe 3.0."]

[[node]]
name = "n1"
gpus = [{card = "A800-PCIe", count = 4}, {card = "V100S-32GB", count = 4}]
)toml"},
    {"baton", "Baton's cluster: 2 A100 and 2 T4 (section 3)", R"toml(
name = "baton"
notes = [
  "Memory of the A100 and all links are not given: 40 GB PCIe cards, one machine for each kind and 100 Gbit/s are assumed.",
]

[defaults]
nic_gbit_per_second = 100

[[node]]
name = "n1"
gpus = [{card = "A100-PCIe-40GB", count = 2}]

[[node]]
name = "n2"
gpus = [{card = "T4", count = 2}]
)toml"},
};

}  // namespace

std::span<const ClusterPreset> PoplarAndBatonClusters() { return kPoplarAndBatonClusters; }

}  // namespace motley::planner
