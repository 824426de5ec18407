// Where tensor-parallel groups, pipeline stages and replicas go on a cluster when all cards are taken to be alike: Megatron's
// order of ranks, tensor parallelism fastest, then data, then pipeline parallelism (Narayanan et al. 2021, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/setting/setting.h"

namespace motley::planner {

// Tensor-parallel groups of `tp` devices, each inside one node and there of as few kinds as possible.
struct MegatronGroups {
  int tp = 1;
  std::vector<std::vector<int>> groups;  // devices of the setting
  std::vector<UnusedDevice> unused;      // what does not divide, with the reason
};

// All kinds of the cluster by the seconds that they take for a layer, fastest first.
std::vector<int> KindsBySpeed(const Setting& setting);

// Orders in which the devices are lined up before they are cut into stages. The first is the cluster's own. `others`: nodes
// with the fastest kind first, nodes with most memory first (early stages keep most microbatches), each over all kinds and with
// the slowest 1, 2, ... kinds left out. `kinds_by_speed`: fastest first. No doubles.
std::vector<std::vector<int>> DeviceOrders(const Setting& setting, const std::vector<int>& kinds_by_speed, bool others);

// `order`: devices of the setting, those of a node together. Devices not in it are listed as unused.
MegatronGroups MakeGroups(const Setting& setting, const std::vector<int>& order, int tp);

// Powers of two up to `most` that divide heads, key-value heads and the feed-forward width.
std::vector<int> TensorParallelDegrees(const ModelShape& model, int64_t most);

}  // namespace motley::planner
