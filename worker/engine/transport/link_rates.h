// What every rank knows of every rank's emulated links, and so the slowest link of a path: the same number on all of them.
#pragma once

#include <vector>

#include "common/base/ids.h"

namespace motley::engine {

// Bytes per second in each direction; 0 = not paced.
struct LinkRates {
  double device_bytes_per_second = 0;  // the device's own link
  double node_bytes_per_second = 0;    // its node's NIC
};

// Of the links that a transfer crosses: both devices' own and, between nodes, both NICs. 0 = none of them is paced. `devices` and
// `rates` are by rank.
double SlowestOnPath(const std::vector<DeviceId>& devices, const std::vector<LinkRates>& rates, int from, int to);
// Of all the paths from a member to the next.
double SlowestInRing(const std::vector<DeviceId>& devices, const std::vector<LinkRates>& rates, const std::vector<int>& members);

}  // namespace motley::engine
