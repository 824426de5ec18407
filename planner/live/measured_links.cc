#include "planner/live/measured_links.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/link_class.h"
#include "planner/cluster/links.h"

namespace motley::planner {
namespace {

// Rates that are no further apart are one: measuring a link twice is off by about as much, and groups must not follow noise.
constexpr double kAlikeWays = 0.1;
// Latencies are noisier, and matter less.
constexpr double kLongWay = 2;

struct Way {
  double bytes_per_second = 0, latency_seconds = 0;  // of the slower direction
};
struct Ways {
  std::map<std::pair<int, int>, Way> between;       // by nodes, the lower one first
  std::map<std::pair<int, LinkClass>, Way> inside;  // by node
};

// Of several measurements the slowest.
template <typename Key>
void KeepSlower(const Key& key, const Way& way, std::map<Key, Way>* ways) {
  const auto [at, added] = ways->try_emplace(key, way);
  if (added) return;
  at->second.bytes_per_second = std::min(at->second.bytes_per_second, way.bytes_per_second);
  at->second.latency_seconds = std::max(at->second.latency_seconds, way.latency_seconds);
}

Ways WaysOf(const CollectiveProfile& measured, const std::vector<DeviceDescription>& devices, const Cluster& cluster) {
  Ways ways;
  for (const MeasuredLink& link : measured.links) {
    const auto [a, b] = std::minmax(cluster.devices[link.from].node, cluster.devices[link.to].node);
    const Way way{std::clamp(link.bytes_per_second, kLeastRate, kMostNicRate),
                  std::min(link.latency_seconds, kMostLatencySeconds)};
    if (a == b) {
      KeepSlower(std::pair(a, ClassOfLink(devices[link.from], devices[link.to])), way, &ways.inside);
    } else {
      KeepSlower(std::pair(a, b), way, &ways.between);
    }
  }
  return ways;
}

// Rates by node, 0 = none; from the fastest on those alike become their mean.
void Level(std::vector<double>* rates) {
  std::vector<double*> order;
  for (double& rate : *rates) {
    if (rate > 0) order.push_back(&rate);
  }
  std::stable_sort(order.begin(), order.end(), [](const double* a, const double* b) { return *a > *b; });
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    double sum = 0;
    for (end = begin; end < order.size() && *order[end] >= (1 - kAlikeWays) * *order[begin]; ++end) sum += *order[end];
    for (size_t i = begin; i < end; ++i) *order[i] = sum / static_cast<double>(end - begin);
  }
}

struct NodeWays {
  std::vector<double> inside, outside;                  // bytes a second by node; 0 = not measured
  std::vector<double> inside_latency, outside_latency;  // seconds
};

NodeWays ByNode(const Ways& ways, size_t nodes) {
  NodeWays by{std::vector<double>(nodes), std::vector<double>(nodes), std::vector<double>(nodes), std::vector<double>(nodes)};
  for (const auto& [node_and_class, way] : ways.inside) {
    const int n = node_and_class.first;
    if (way.bytes_per_second <= by.inside[n]) continue;
    by.inside[n] = way.bytes_per_second;
    by.inside_latency[n] = way.latency_seconds;
  }
  for (const auto& [pair, way] : ways.between) {
    for (const int n : {pair.first, pair.second}) {
      by.outside_latency[n] = by.outside[n] > 0 ? std::min(by.outside_latency[n], way.latency_seconds) : way.latency_seconds;
      by.outside[n] = std::max(by.outside[n], way.bytes_per_second);
    }
  }
  Level(&by.inside);
  Level(&by.outside);
  return by;
}

bool SetNode(const NodeWays& by, int n, ClusterNode* node) {
  const double inside = by.inside[n], outside = by.outside[n];
  if (inside <= 0 && outside <= 0) return false;
  // A device alone on its node has its NIC for itself.
  node->device_link_bytes_per_second = inside > 0 ? inside : outside;
  node->device_link_latency_seconds = inside > 0 ? by.inside_latency[n] : by.outside_latency[n];
  node->nic_bytes_per_second = outside > 0 ? outside : inside;
  node->nic_latency_seconds = outside > 0 ? by.outside_latency[n] : by.inside_latency[n];
  return true;
}

// The node's devices of whose class of link it is measured that it is slower than the fastest.
void SetSlowPairs(const Ways& ways, const std::vector<DeviceDescription>& devices, int n, ClusterNode* node) {
  node->slow_pairs.clear();
  for (size_t i = 0; i < node->devices.size(); ++i) {
    for (size_t j = i + 1; j < node->devices.size(); ++j) {
      const int a = node->devices[i], b = node->devices[j];
      const auto way = ways.inside.find({n, ClassOfLink(devices[a], devices[b])});
      if (way == ways.inside.end() || way->second.bytes_per_second >= (1 - kAlikeWays) * node->device_link_bytes_per_second)
        continue;
      node->slow_pairs.push_back({a, b, way->second.bytes_per_second, way->second.latency_seconds});
    }
  }
}

void SetPair(int a, int b, double value, size_t nodes, std::vector<std::vector<double>>* matrix) {
  if (matrix->empty()) matrix->assign(nodes, std::vector<double>(nodes, 0));
  (*matrix)[a][b] = (*matrix)[b][a] = value;
}

}  // namespace

std::vector<bool> SetMeasuredLinks(const CollectiveProfile& measured, const std::vector<DeviceDescription>& devices,
                                   const std::vector<bool>& declared, Cluster* cluster) {
  const size_t nodes = cluster->nodes.size();
  std::vector<bool> set(nodes, false);
  const Ways ways = WaysOf(measured, devices, *cluster);
  const NodeWays by = ByNode(ways, nodes);
  for (size_t n = 0; n < nodes; ++n) {
    if (declared[n]) continue;
    set[n] = SetNode(by, static_cast<int>(n), &cluster->nodes[n]);
    if (set[n]) SetSlowPairs(ways, devices, static_cast<int>(n), &cluster->nodes[n]);
  }
  for (const auto& [pair, way] : ways.between) {
    const auto [a, b] = pair;
    if (!set[a] && !set[b]) continue;
    const ClusterNode &one = cluster->nodes[a], &other = cluster->nodes[b];
    if (way.bytes_per_second < (1 - kAlikeWays) * std::min(one.nic_bytes_per_second, other.nic_bytes_per_second)) {
      SetPair(a, b, way.bytes_per_second, nodes, &cluster->node_bytes_per_second);
    }
    if (way.latency_seconds > kLongWay * std::max(one.nic_latency_seconds, other.nic_latency_seconds)) {
      SetPair(a, b, way.latency_seconds, nodes, &cluster->node_latency_seconds);
    }
  }
  return set;
}

std::string MeasuredLinksText(const CollectiveProfile& measured, const std::vector<DeviceDescription>& devices,
                              const Cluster& cluster) {
  struct Range {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    void Add(const Way& way) {
      least = std::min(least, way.bytes_per_second);
      most = std::max(most, way.bytes_per_second);
    }
  };
  const Ways ways = WaysOf(measured, devices, cluster);
  std::map<LinkClass, Range> ranges;
  for (const auto& [node_and_class, way] : ways.inside) ranges[node_and_class.second].Add(way);
  const bool several = ranges.size() > 1;
  for (const auto& [pair, way] : ways.between) ranges[LinkClass::kNetwork].Add(way);
  std::string text;
  for (const auto& [link, range] : ranges) {
    std::string where = link == LinkClass::kNetwork ? "between nodes" : "inside nodes";
    if (several && link != LinkClass::kNetwork) absl::StrAppend(&where, " by ", std::string(LinkClassName(link)));
    absl::StrAppendFormat(&text, "%s%s %.3g to %.3g GB/s", text.empty() ? "" : ", ", where, range.least / 1e9, range.most / 1e9);
  }
  return text;
}

std::string SlowerThanDeclared(const CollectiveProfile& measured, const Cluster& cluster) {
  const Links links(cluster);
  double worst = 1 - kAlikeWays;
  std::string text;
  for (const MeasuredLink& link : measured.links) {
    const double part = link.bytes_per_second / links.Rate(link.from, link.to);
    if (part >= worst) continue;
    worst = part;
    text = absl::StrFormat("the link from %s to %s measures %.3g GB/s, %.2f of what is declared",
                           cluster.devices[link.from].id.value(), cluster.devices[link.to].id.value(),
                           link.bytes_per_second / 1e9, part);
  }
  return text;
}

}  // namespace motley::planner
