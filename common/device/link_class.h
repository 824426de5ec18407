// What lies between two devices, as far as their nodes know: links of one class are measured by a few of them
// (docs/inside/profiles.md).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "common/device/device.h"

namespace motley {

enum class LinkClass {
  kNvLink,   // of one node: NVIDIA's links
  kP2p,      // of one node: PCIe, past the host's memory
  kHost,     // of one node: through the host's memory
  kNetwork,  // of two nodes
};
std::string_view LinkClassName(LinkClass link);  // "NVLink", "PCIe P2P", "host memory", "network"

// The same whichever comes first: what one of two cards does not reach, none does.
LinkClass ClassOfLink(const DeviceDescription& a, const DeviceDescription& b);

// The ranks whose links stand for the others inside their nodes: two pairs of each class in each node, that share no rank where
// there are such. Where no node has more than one class: none, and of each node its first two ranks do. By rank.
std::vector<std::pair<int, int>> RepresentativePairs(const std::vector<DeviceDescription>& devices);

}  // namespace motley
