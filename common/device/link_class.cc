#include "common/device/link_class.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>

namespace motley {
namespace {

bool Names(const std::vector<std::string>& peers, const CardDescription& card) {
  return !card.bus.empty() && std::find(peers.begin(), peers.end(), card.bus) != peers.end();
}

using RankPair = std::pair<int, int>;

bool ShareARank(const RankPair& one, const RankPair& other) {
  return one.first == other.first || one.first == other.second || one.second == other.first || one.second == other.second;
}

// The first, and the first that shares no rank with it, else the second.
std::vector<RankPair> TwoOf(const std::vector<RankPair>& pairs) {
  if (pairs.size() < 2) return pairs;
  const auto apart = std::find_if(pairs.begin() + 1, pairs.end(), [&](const RankPair& p) { return !ShareARank(p, pairs[0]); });
  return {pairs[0], apart != pairs.end() ? *apart : pairs[1]};
}

}  // namespace

std::string_view LinkClassName(LinkClass link) {
  constexpr std::array<std::string_view, 4> kNames = {"NVLink", "PCIe P2P", "host memory", "network"};
  return kNames[static_cast<size_t>(link)];
}

LinkClass ClassOfLink(const DeviceDescription& a, const DeviceDescription& b) {
  if (NodeOf(a.id) != NodeOf(b.id)) return LinkClass::kNetwork;
  if (Names(a.card.nvlink_peers, b.card) && Names(b.card.nvlink_peers, a.card)) return LinkClass::kNvLink;
  if (Names(a.card.p2p_peers, b.card) && Names(b.card.p2p_peers, a.card)) return LinkClass::kP2p;
  return LinkClass::kHost;
}

std::vector<std::pair<int, int>> RepresentativePairs(const std::vector<DeviceDescription>& devices) {
  std::map<NodeName, std::map<LinkClass, std::vector<RankPair>>> by_node;
  for (size_t a = 0; a < devices.size(); ++a) {
    for (size_t b = a + 1; b < devices.size(); ++b) {
      if (NodeOf(devices[a].id) != NodeOf(devices[b].id)) continue;
      by_node[NodeOf(devices[a].id)][ClassOfLink(devices[a], devices[b])].emplace_back(a, b);
    }
  }
  const bool several = std::any_of(by_node.begin(), by_node.end(), [](const auto& node) { return node.second.size() > 1; });
  std::vector<RankPair> chosen;
  for (const auto& [node, classes] : by_node) {
    if (!several) break;
    for (const auto& [link, pairs] : classes) {
      const std::vector<RankPair> two = TwoOf(pairs);
      chosen.insert(chosen.end(), two.begin(), two.end());
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace motley
