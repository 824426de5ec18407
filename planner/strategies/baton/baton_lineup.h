// Ways to make tensor-parallel units out of a cluster's devices, in pipeline order: the outermost choice of the Baton search.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/published/baton_limits.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct BatonLineUp {
  std::vector<std::vector<int>> units;  // devices of the setting, by kind inside a unit
  std::vector<UnusedDevice> unused;
  friend bool operator==(const BatonLineUp& a, const BatonLineUp& b) { return a.units == b.units; }
};

// `kinds_by_speed`: fastest first. Each order of devices (megatron_layout.h) is cut, node by node, into units of at most
// `largest` devices: of like cards side by side, or, where a node has several kinds, of each some. Degrees are powers of two and
// whole nodes. Without limits: a degree for each kind of node (all combinations while they are few), several orders, the slowest
// kinds left out. Small clusters add units across nodes: one of all devices, or one device of each node. No doubles.
std::vector<BatonLineUp> MakeLineUps(const Setting& setting, const std::vector<int>& kinds_by_speed, int64_t largest,
                                     const BatonLimits& limits);

}  // namespace motley::planner
