// HexiScale (arXiv 2409.01143), sections 3.1, 5.1 and 5.3, appendix B.
#include "planner/cluster/presets/cluster_presets.h"

namespace motley::planner {
namespace {

constexpr ClusterPreset kHexiscaleClusters[] = {
    {"hexiscale-1", "HexiScale setting 1: 8 x 3080 Ti, 8 x 3090, 24 x 4090 (section 5.1)", R"toml(
name = "hexiscale-1"
notes = [
  "Between machines: about 0.7 GB/s (section 5.1).",
  "The 4090's link is not given there: 32 GB/s, as in section 3.1 and table 4.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3080ti"
gpus = [{card = "RTX-3080-Ti", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090"
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
count = 3
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32
)toml"},
    {"hexiscale-2", "HexiScale setting 2: 8 each of 3080 Ti, 3090, 4090, A800 (section 5.1)", R"toml(
name = "hexiscale-2"
notes = [
  "Between machines: about 0.7 GB/s (section 5.1).",
  "The 4090's link is not given there: 32 GB/s, as in section 3.1 and table 4.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3080ti"
gpus = [{card = "RTX-3080-Ti", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090"
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32

[[node]]
name = "a800"
gpus = [{card = "A800", count = 8}]
device_link_gb_per_second = 200
)toml"},
    {"hexiscale-3", "HexiScale setting 3: 16 x 3090, 32 x 4090, 8 x A800 (section 5.1)", R"toml(
name = "hexiscale-3"
notes = [
  "Between machines: about 0.7 GB/s (section 5.1).",
  "The 4090's link is not given there: 32 GB/s, as in section 3.1 and table 4.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3090"
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090-half"
count = 2
gpus = [{card = "RTX-3090", count = 4}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
count = 4
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32

[[node]]
name = "a800"
gpus = [{card = "A800", count = 8}]
device_link_gb_per_second = 200
)toml"},
    {"hexiscale-case", "HexiScale's case study: 3 A800, 3 x 4090, 2 x 3090, 1 GB/s (section 3.1)", R"toml(
name = "hexiscale-case"
notes = [
  "Section 3.1 gives the 3090 16 GB/s, section 5.1 about 24.",
]

[defaults]
nic_gb_per_second = 1

[[node]]
name = "a800"
gpus = [{card = "A800", count = 3}]
device_link_gb_per_second = 200

[[node]]
name = "r4090"
gpus = [{card = "RTX-4090", count = 3}]
device_link_gb_per_second = 32

[[node]]
name = "r3090"
gpus = [{card = "RTX-3090", count = 2}]
device_link_gb_per_second = 16
)toml"},
    {"hexiscale-homogeneous", "HexiScale's reference: 4 x 8 A800 PCIe without RDMA (section 5.1)", R"toml(
name = "hexiscale-homogeneous"
notes = [
  "The paper uses two machines for 7B and 13B, four for 30B; with RDMA between machines it has 10 GB/s (section 5.1).",
  "PCIe 4.0 inside is assumed.",
  "Between machines: about 0.7 GB/s (section 5.1).",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "a800"
count = 4
gpus = [{card = "A800-PCIe", count = 8}]
device_link_gb_per_second = 31.5
)toml"},
    {"hexiscale-240", "HexiScale's simulated cluster: 64 x 3090, 160 x 4090, 16 x A800 (table 4)", R"toml(
name = "hexiscale-240"
notes = [
  "Table 4 gives links inside the machines; between them 0.7 GB/s is assumed, as in section 5.1.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3090"
count = 5
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090-half"
count = 6
gpus = [{card = "RTX-3090", count = 4}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
count = 20
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32

[[node]]
name = "a800"
count = 2
gpus = [{card = "A800", count = 8}]
device_link_gb_per_second = 200
)toml"},
    {"hexiscale-64", "HexiScale's scaling test: 64 GPUs (figure 9)", R"toml(
name = "hexiscale-64"
notes = [
  "Figure 9 says how many GPUs, not which: setting 3's machines in its proportions, one 8 x 4090 more (64 GPUs), times 1.",
  "Links as in settings 1 to 3.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3090"
count = 1
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090-half"
count = 2
gpus = [{card = "RTX-3090", count = 4}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
count = 5
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32

[[node]]
name = "a800"
count = 1
gpus = [{card = "A800", count = 8}]
device_link_gb_per_second = 200
)toml"},
    {"hexiscale-128", "HexiScale's scaling test: 128 GPUs (figure 9)", R"toml(
name = "hexiscale-128"
notes = [
  "Figure 9 says how many GPUs, not which: setting 3's machines in its proportions, one 8 x 4090 more (64 GPUs), times 2.",
  "Links as in settings 1 to 3.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3090"
count = 2
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090-half"
count = 4
gpus = [{card = "RTX-3090", count = 4}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
count = 10
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32

[[node]]
name = "a800"
count = 2
gpus = [{card = "A800", count = 8}]
device_link_gb_per_second = 200
)toml"},
    {"hexiscale-192", "HexiScale's scaling test: 192 GPUs (figure 9)", R"toml(
name = "hexiscale-192"
notes = [
  "Figure 9 says how many GPUs, not which: setting 3's machines in its proportions, one 8 x 4090 more (64 GPUs), times 3.",
  "Links as in settings 1 to 3.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3090"
count = 3
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090-half"
count = 6
gpus = [{card = "RTX-3090", count = 4}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
count = 15
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32

[[node]]
name = "a800"
count = 3
gpus = [{card = "A800", count = 8}]
device_link_gb_per_second = 200
)toml"},
    {"hexiscale-256", "HexiScale's scaling test: 256 GPUs (figure 9)", R"toml(
name = "hexiscale-256"
notes = [
  "Figure 9 says how many GPUs, not which: setting 3's machines in its proportions, one 8 x 4090 more (64 GPUs), times 4.",
  "Links as in settings 1 to 3.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3090"
count = 4
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090-half"
count = 8
gpus = [{card = "RTX-3090", count = 4}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
count = 20
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32

[[node]]
name = "a800"
count = 4
gpus = [{card = "A800", count = 8}]
device_link_gb_per_second = 200
)toml"},
    {"hexiscale-320", "HexiScale's scaling test: 320 GPUs (figure 9)", R"toml(
name = "hexiscale-320"
notes = [
  "Figure 9 says how many GPUs, not which: setting 3's machines in its proportions, one 8 x 4090 more (64 GPUs), times 5.",
  "Links as in settings 1 to 3.",
]

[defaults]
nic_gb_per_second = 0.7

[[node]]
name = "r3090"
count = 5
gpus = [{card = "RTX-3090", count = 8}]
device_link_gb_per_second = 24

[[node]]
name = "r3090-half"
count = 10
gpus = [{card = "RTX-3090", count = 4}]
device_link_gb_per_second = 24

[[node]]
name = "r4090"
count = 25
gpus = [{card = "RTX-4090", count = 8}]
device_link_gb_per_second = 32

[[node]]
name = "a800"
count = 5
gpus = [{card = "A800", count = 8}]
device_link_gb_per_second = 200
)toml"},
};

}  // namespace

std::span<const ClusterPreset> HexiscaleClusters() { return kHexiscaleClusters; }

}  // namespace motley::planner
