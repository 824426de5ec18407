#include "planner/cluster/links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace motley::planner {
namespace {

template <typename T>
const T& At(const std::vector<T>& values, int i) {
  return values[i];
}

// Ascending resources, each once, none empty. Cheap where the loads begin in order, as a ring's do.
void Tidy(std::vector<LinkLoad>* loads) {
  const auto less = [](const LinkLoad& a, const LinkLoad& b) { return a.resource < b.resource; };
  const auto middle = std::is_sorted_until(loads->begin(), loads->end(), less);
  std::sort(middle, loads->end(), less);
  if (middle != loads->begin() && middle != loads->end() && less(*middle, *(middle - 1))) {
    std::inplace_merge(loads->begin(), middle, loads->end(), less);
  }
  size_t kept = 0;
  for (const LinkLoad& load : *loads) {
    if (load.bytes <= 0) continue;
    if (kept > 0 && (*loads)[kept - 1].resource == load.resource) {
      (*loads)[kept - 1].bytes += load.bytes;
    } else {
      (*loads)[kept++] = load;
    }
  }
  loads->resize(kept);
}

double At(const std::vector<std::vector<double>>& matrix, int a, int b) { return matrix.empty() ? 0 : matrix[a][b]; }

int At(const std::vector<std::vector<int>>& matrix, int a, int b) { return matrix.empty() ? -1 : matrix[a][b]; }

}  // namespace

Links::Links(const Cluster& cluster)
    : collective_efficiency_(cluster.collective_efficiency),
      overlap_efficiency_(cluster.overlap_efficiency),
      node_latency_(cluster.node_latency_seconds),
      region_latency_(cluster.region_latency_seconds) {
  for (const ClusterDevice& device : cluster.devices) node_of_.push_back(device.node);
  AddNodes(cluster);
  AddSlowPairs(cluster);
  AddMatrices(cluster);
  AddHosts(cluster);
  AddMeasured(cluster);
  std::vector<int> all(cluster.devices.size());
  std::iota(all.begin(), all.end(), 0);
  hidden_of_all_ = HiddenPart(all);
  everything_hides_ = overlap_efficiency_ >= 1 &&
                      std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.hidden_part >= 1; });
}

double Links::HiddenPart(std::span<const int> devices) const {
  double part = 1, link = std::numeric_limits<double>::infinity(), network = link;
  bool crosses = false;
  for (const int device : devices) {
    const Node& node = At(nodes_, At(node_of_, device));
    part = std::min(part, node.hidden_part);
    link = std::min(link, node.link_rate);
    if (node.nic_rate > 0) network = std::min(network, node.nic_rate);
    crosses |= At(node_of_, device) != At(node_of_, devices.front());
  }
  const double on_links = crosses ? std::min(1.0, network / link) : 1;
  return overlap_efficiency_ * (1 - (1 - part) * on_links);
}

void Links::AddMeasured(const Cluster& cluster) {
  if (cluster.collectives.points.empty() || cluster.devices.size() < 2) return;
  std::vector<int> all(cluster.devices.size());
  std::iota(all.begin(), all.end(), 0);
  CollectiveProfile modelled = cluster.collectives;
  for (CollectivePoint& point : modelled.points) {
    const std::vector<double> shares = SharesWithLargest(all.size(), point.skew);
    const auto seconds = [&](Collective collective) {
      return SecondsAlone(ModelledRing(collective, all, static_cast<double>(point.bytes), shares));
    };
    point.all_gather_seconds = seconds(Collective::kAllGather);
    point.reduce_scatter_seconds = seconds(Collective::kReduceScatter);
  }
  measured_ = MeasuredCollectives(cluster.collectives);
  modelled_ = MeasuredCollectives(modelled);
  measured_scalars_seconds_ = cluster.collectives.barrier_seconds;
}

int Links::Add(std::string name, double capacity) {
  names_.push_back(std::move(name));
  capacity_.push_back(capacity);
  return num_resources() - 1;
}

void Links::AddNodes(const Cluster& cluster) {
  // Devices first, in order: a ring in device order then makes its loads in ascending order without sorting.
  for (const ClusterDevice& device : cluster.devices) {
    const double rate = At(cluster.nodes, device.node).device_link_bytes_per_second;
    const int out = Add(absl::StrCat(device.id.value(), " out"), rate);
    device_.push_back({out, Add(absl::StrCat(device.id.value(), " in"), rate)});
  }
  for (const ClusterNode& node : cluster.nodes) {
    nodes_.push_back({node.region,
                      node.device_link_latency_seconds,
                      node.nic_latency_seconds,
                      node.devices.front(),
                      static_cast<int>(node.devices.size()),
                      node.collective_part,
                      node.hidden_part,
                      node.collective_part * node.device_link_bytes_per_second,
                      node.nic_bytes_per_second,
                      {}});
    Pair nic;
    if (node.nic_bytes_per_second > 0) {
      nic.out = Add(absl::StrCat("NIC of ", node.name.value(), " out"), node.nic_bytes_per_second);
      nic.in = Add(absl::StrCat("NIC of ", node.name.value(), " in"), node.nic_bytes_per_second);
    }
    nic_.push_back(nic);
  }
}

void Links::AddSlowPairs(const Cluster& cluster) {
  for (size_t n = 0; n < cluster.nodes.size(); ++n) {
    Node& node = nodes_[n];
    if (cluster.nodes[n].slow_pairs.empty()) continue;
    node.pairs.resize(static_cast<size_t>(node.num_devices) * static_cast<size_t>(node.num_devices));
    for (const DevicePair& pair : cluster.nodes[n].slow_pairs) {
      for (const auto& [from, to] : {std::pair(pair.a, pair.b), std::pair(pair.b, pair.a)}) {
        const std::string name = absl::StrCat(At(cluster.devices, from).id.value(), " to ", At(cluster.devices, to).id.value());
        node.pairs[static_cast<size_t>((from - node.first_device) * node.num_devices + to - node.first_device)] = {
            Add(name, pair.bytes_per_second), pair.latency_seconds};
      }
    }
  }
}

const Links::SlowPair* Links::SlowPairOf(int from, int to) const {
  const Node& node = At(nodes_, At(node_of_, from));
  if (node.pairs.empty()) return nullptr;
  const SlowPair& pair = At(node.pairs, (from - node.first_device) * node.num_devices + to - node.first_device);
  return pair.resource >= 0 ? &pair : nullptr;
}

// A pair that is no slower than both NICs cannot bind and gets no resource of its own.
void Links::AddMatrices(const Cluster& cluster) {
  const size_t nodes = cluster.nodes.size(), regions = cluster.regions.size();
  if (!cluster.node_bytes_per_second.empty()) {
    node_pair_.assign(nodes, std::vector<int>(nodes, -1));
    for (size_t a = 0; a < nodes; ++a) {
      for (size_t b = 0; b < nodes; ++b) {
        const double rate = cluster.node_bytes_per_second[a][b];
        const double nic_a = cluster.nodes[a].nic_bytes_per_second, nic_b = cluster.nodes[b].nic_bytes_per_second;
        if (a == b || rate <= 0 || (nic_a > 0 && nic_b > 0 && rate >= std::min(nic_a, nic_b))) continue;
        node_pair_[a][b] = Add(absl::StrCat(cluster.nodes[a].name.value(), " to ", cluster.nodes[b].name.value()), rate);
      }
    }
  }
  if (!cluster.region_bytes_per_second.empty()) {
    region_.assign(regions, std::vector<int>(regions, -1));
    for (size_t a = 0; a < regions; ++a) {
      for (size_t b = 0; b < regions; ++b) {
        const double rate = cluster.region_bytes_per_second[a][b];
        if (a != b && rate > 0)
          region_[a][b] = Add(absl::StrCat("region ", cluster.regions[a], " to ", cluster.regions[b]), rate);
      }
    }
  }
}

void Links::AddHosts(const Cluster& cluster) {
  host_.resize(cluster.devices.size());
  for (const ClusterNode& node : cluster.nodes) {
    if (node.host_link_bytes_per_second <= 0) continue;
    const auto add = [&](const std::vector<int>& devices) {
      const std::string name =
          absl::StrCat("host link of ", At(cluster.devices, devices.front()).id.value(), devices.size() > 1 ? " and others" : "");
      const int out = Add(absl::StrCat(name, " out"), node.host_link_bytes_per_second);
      const int in = Add(absl::StrCat(name, " in"), node.host_link_bytes_per_second);
      for (const int device : devices) host_[device] = {out, in};
    };
    for (const std::vector<int>& root : node.pcie_roots) {
      if (!root.empty()) add(root);
    }
    for (const int device : node.devices) {
      if (At(host_, device).out < 0) add({device});
    }
  }
}

double Links::Latency(int from, int to) const {
  const int a = At(node_of_, from), b = At(node_of_, to);
  const Node &source = At(nodes_, a), &target = At(nodes_, b);
  if (a == b) {
    const SlowPair* const pair = SlowPairOf(from, to);
    return pair != nullptr ? pair->latency_seconds : source.device_latency_seconds;
  }
  double seconds = At(node_latency_, a, b);
  if (seconds <= 0) seconds = std::max(source.nic_latency_seconds, target.nic_latency_seconds);
  return std::max(seconds, At(region_latency_, source.region, target.region));
}

template <typename Function>
void Links::ForPath(int from, int to, Function add) const {
  if (from == to) return;
  add(At(device_, from).out);
  add(At(device_, to).in);
  ForBorders(from, to, add);
}

template <typename Function>
void Links::ForBorders(int from, int to, Function add) const {
  const int a = At(node_of_, from), b = At(node_of_, to);
  if (a == b) {
    if (const SlowPair* const pair = SlowPairOf(from, to); pair != nullptr) add(pair->resource);
    return;
  }
  for (const int resource :
       {At(nic_, a).out, At(nic_, b).in, At(node_pair_, a, b), At(region_, At(nodes_, a).region, At(nodes_, b).region)}) {
    if (resource >= 0) add(resource);
  }
}

Flow Links::PointToPoint(int from, int to, double bytes) const {
  Flow flow;
  if (from == to || bytes <= 0) return flow;
  flow.latency_seconds = Latency(from, to);
  flow.loads.reserve(6);
  ForPath(from, to, [&](int resource) { flow.loads.push_back({resource, bytes}); });
  Tidy(&flow.loads);
  return flow;
}

// Positions into `devices`: by region, node, device, so that a ring crosses each NIC and each border once each way.
std::vector<int> Links::RingOrder(std::span<const int> devices) const {
  std::vector<int> order(devices.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int x, int y) {
    const int a = devices[x], b = devices[y];
    const int region_a = At(nodes_, At(node_of_, a)).region, region_b = At(nodes_, At(node_of_, b)).region;
    return region_a != region_b ? region_a < region_b : a < b;  // devices are numbered in the order of nodes
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
  return order;
}

double Links::MeasuredFactor(Collective collective, double seconds, size_t devices, double bytes,
                             std::span<const double> shares) const {
  const double even = 1.0 / static_cast<double>(devices);
  const double largest = shares.empty() ? even : *std::max_element(shares.begin(), shares.end());
  if (devices == node_of_.size()) return seconds > 0 ? measured_.Seconds(collective, bytes, largest) / seconds : 1;
  const double modelled = modelled_.Seconds(collective, bytes, largest);
  return modelled > 0 ? measured_.Seconds(collective, bytes, largest) / modelled : 1;
}

Flow Links::Ring(Collective collective, std::span<const int> devices, double bytes, std::span<const double> shares) const {
  Flow flow = ModelledRing(collective, devices, bytes, shares);
  if (measured_.empty() || flow.loads.empty()) return flow;
  const double factor = MeasuredFactor(collective, SecondsAlone(flow), devices.size(), bytes, shares);
  flow.latency_seconds *= factor;
  for (LinkLoad& load : flow.loads) load.bytes *= factor;
  return flow;
}

Flow Links::ModelledRing(Collective collective, std::span<const int> devices, double bytes,
                         std::span<const double> shares) const {
  Flow flow;
  const size_t n = devices.size();
  if (n < 2 || bytes <= 0) return flow;
  flow.hidden = HiddenPart(devices);
  const std::vector<int> order = RingOrder(devices);
  const auto device = [&](size_t i) { return devices[order[i]]; };
  const double even = 1.0 / static_cast<double>(n), whole = bytes / collective_efficiency_;
  const auto foreign = [&](size_t i) { return whole * (1 - (shares.empty() ? even : shares[order[i]])); };
  // docs/inside/collectives.md: a hop carries all but the receiver's part when gathering, all but the sender's when reducing.
  const auto carried = [&](size_t from, size_t to) {
    return (collective != Collective::kReduceScatter ? foreign(to) : 0) +
           (collective != Collective::kAllGather ? foreign(from) : 0);
  };
  flow.loads.reserve(2 * n + n / 2 + 16);
  for (size_t i = 0; i < n; ++i) {  // resources of devices in their order, which is the ring's unless regions interleave
    const double part = At(nodes_, At(node_of_, device(i))).collective_part;
    flow.loads.push_back({At(device_, device(i)).out, carried(i, i + 1 < n ? i + 1 : 0) / part});
    flow.loads.push_back({At(device_, device(i)).in, carried(i > 0 ? i - 1 : n - 1, i) / part});
  }
  double around = 0, shortest_hop = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < n; ++i) {
    const size_t next = i + 1 < n ? i + 1 : 0;
    const double hop = Latency(device(i), device(next));
    around += hop;
    shortest_hop = std::min(shortest_hop, hop);
    ForBorders(device(i), device(next), [&](int resource) { flow.loads.push_back({resource, carried(i, next)}); });
  }
  Tidy(&flow.loads);
  // The first segment of a block passes n - 1 of the n hops.
  flow.latency_seconds = (around - shortest_hop) * (collective == Collective::kAllReduce ? 2 : 1);
  return flow;
}

double Links::TreeSeconds(std::span<const int> devices) const {
  if (!measured_.empty() && devices.size() == node_of_.size()) return measured_scalars_seconds_;
  struct Level {
    int members = 0, first = -1;  // `first`: a device
    double hop = 0;               // the longest from the first
    void Add(const Links& links, int device) {
      if (first >= 0 && first != device) hop = std::max(hop, links.Latency(first, device));
      if (first < 0) first = device;
      ++members;
    }
    double Seconds() const { return members < 2 ? 0 : 2 * std::ceil(std::log2(members)) * hop; }
  };
  std::vector<Level> nodes(nodes_.size());
  for (const int device : devices) nodes[At(node_of_, device)].Add(*this, device);
  std::map<int, Level> regions;
  double in_nodes = 0, in_regions = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    in_nodes = std::max(in_nodes, nodes[n].Seconds());
    if (nodes[n].members > 0) regions[nodes_[n].region].Add(*this, nodes[n].first);
  }
  Level between;
  for (const auto& [region, level] : regions) {
    in_regions = std::max(in_regions, level.Seconds());
    between.Add(*this, level.first);
  }
  return in_nodes + in_regions + between.Seconds();
}

Flow Links::ToHost(int device, double bytes) const {
  Flow flow;
  const int resource = At(host_, device).out;
  if (resource >= 0 && bytes > 0) flow = {At(nodes_, At(node_of_, device)).device_latency_seconds, {{resource, bytes}}};
  return flow;
}

Flow Links::FromHost(int device, double bytes) const {
  Flow flow;
  const int resource = At(host_, device).in;
  if (resource >= 0 && bytes > 0) flow = {At(nodes_, At(node_of_, device)).device_latency_seconds, {{resource, bytes}}};
  return flow;
}

Flow Links::Together(std::span<const Flow> flows) {
  Flow sum;
  for (const Flow& flow : flows) {
    sum.latency_seconds = std::max(sum.latency_seconds, flow.latency_seconds);
    sum.hidden = std::min(sum.hidden, flow.hidden);
    sum.loads.insert(sum.loads.end(), flow.loads.begin(), flow.loads.end());
  }
  Tidy(&sum.loads);
  return sum;
}

double Links::SecondsAlone(const Flow& flow) const {
  double seconds = 0;
  for (const LinkLoad& load : flow.loads) seconds = std::max(seconds, load.bytes / Capacity(load.resource));
  return flow.latency_seconds + seconds;
}

double Links::Rate(int from, int to) const {
  double rate = std::numeric_limits<double>::infinity();
  ForPath(from, to, [&](int resource) { rate = std::min(rate, Capacity(resource)); });
  return rate;
}

}  // namespace motley::planner
