#include "planner/live/measured_links.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/cluster/links.h"

namespace motley::planner {
namespace {

// Rates that are no further apart are one: measuring a link twice is off by about as much, and groups must not follow noise.
constexpr double kAlike = 0.1;
// Latencies are noisier, and matter less.
constexpr double kLongWay = 2;

struct Way {
  double bytes_per_second = 0, latency_seconds = 0;  // of the slower direction
};
using Ways = std::map<std::pair<int, int>, Way>;  // by nodes, the lower one first; twice the same: inside it

Ways WaysOf(const CollectiveProfile& measured, const Cluster& cluster) {
  Ways ways;
  for (const MeasuredLink& link : measured.links) {
    const auto [a, b] = std::minmax(cluster.devices[link.from].node, cluster.devices[link.to].node);
    const double rate = std::clamp(link.bytes_per_second, kLeastRate, kMostNicRate);
    const double latency = std::min(link.latency_seconds, kMostLatencySeconds);
    const auto [way, added] = ways.try_emplace({a, b}, Way{rate, latency});
    if (added) continue;
    way->second.bytes_per_second = std::min(way->second.bytes_per_second, rate);
    way->second.latency_seconds = std::max(way->second.latency_seconds, latency);
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
    for (end = begin; end < order.size() && *order[end] >= (1 - kAlike) * *order[begin]; ++end) sum += *order[end];
    for (size_t i = begin; i < end; ++i) *order[i] = sum / static_cast<double>(end - begin);
  }
}

struct NodeWays {
  std::vector<double> inside, outside;                  // bytes a second by node; 0 = not measured
  std::vector<double> inside_latency, outside_latency;  // seconds
};

NodeWays ByNode(const Ways& ways, size_t nodes) {
  NodeWays by{std::vector<double>(nodes), std::vector<double>(nodes), std::vector<double>(nodes), std::vector<double>(nodes)};
  for (const auto& [pair, way] : ways) {
    const auto [a, b] = pair;
    if (a == b) {
      by.inside[a] = way.bytes_per_second;
      by.inside_latency[a] = way.latency_seconds;
      continue;
    }
    for (const int n : {a, b}) {
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

void SetPair(int a, int b, double value, size_t nodes, std::vector<std::vector<double>>* matrix) {
  if (matrix->empty()) matrix->assign(nodes, std::vector<double>(nodes, 0));
  (*matrix)[a][b] = (*matrix)[b][a] = value;
}

}  // namespace

std::vector<bool> SetMeasuredLinks(const CollectiveProfile& measured, const std::vector<bool>& declared, Cluster* cluster) {
  const size_t nodes = cluster->nodes.size();
  std::vector<bool> set(nodes, false);
  const Ways ways = WaysOf(measured, *cluster);
  const NodeWays by = ByNode(ways, nodes);
  for (size_t n = 0; n < nodes; ++n) {
    if (!declared[n]) set[n] = SetNode(by, static_cast<int>(n), &cluster->nodes[n]);
  }
  for (const auto& [pair, way] : ways) {
    const auto [a, b] = pair;
    if (a == b || (!set[a] && !set[b])) continue;
    const ClusterNode &one = cluster->nodes[a], &other = cluster->nodes[b];
    if (way.bytes_per_second < (1 - kAlike) * std::min(one.nic_bytes_per_second, other.nic_bytes_per_second)) {
      SetPair(a, b, way.bytes_per_second, nodes, &cluster->node_bytes_per_second);
    }
    if (way.latency_seconds > kLongWay * std::max(one.nic_latency_seconds, other.nic_latency_seconds)) {
      SetPair(a, b, way.latency_seconds, nodes, &cluster->node_latency_seconds);
    }
  }
  return set;
}

std::string MeasuredLinksText(const CollectiveProfile& measured, const Cluster& cluster) {
  struct Range {
    double least = std::numeric_limits<double>::infinity(), most = 0;
  };
  Range inside, between;
  for (const auto& [pair, way] : WaysOf(measured, cluster)) {
    Range& range = pair.first == pair.second ? inside : between;
    range.least = std::min(range.least, way.bytes_per_second);
    range.most = std::max(range.most, way.bytes_per_second);
  }
  std::string text;
  for (const auto& [where, range] : {std::pair("inside nodes", inside), std::pair("between nodes", between)}) {
    if (range.most <= 0) continue;
    absl::StrAppendFormat(&text, "%s%s %.3g to %.3g GB/s", text.empty() ? "" : ", ", where, range.least / 1e9, range.most / 1e9);
  }
  return text;
}

std::string SlowerThanDeclared(const CollectiveProfile& measured, const Cluster& cluster) {
  const Links links(cluster);
  double worst = 1 - kAlike;
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
