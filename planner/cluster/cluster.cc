#include "planner/cluster/cluster.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/cluster/measured_collectives.h"

namespace motley::planner {
namespace {

absl::Status Bad(std::string what) { return absl::InvalidArgumentError(std::move(what)); }

// A rate outside [low, high] is a slip in its unit, since no hardware is like that.
absl::Status CheckRange(const std::string& where, const char* field, double value, double low, double high, const char* unit) {
  if (std::isfinite(value) && value >= low && value <= high) return absl::OkStatus();
  return Bad(absl::StrCat(where, ": ", field, " is ", value, " ", unit, "; it must lie between ", low, " and ", high,
                          " (is it given in the right unit?)"));
}

absl::Status CheckPart(const std::string& field, double value, bool zero_allowed) {
  if (std::isfinite(value) && value <= 1 && (value > 0 || (zero_allowed && value == 0))) return absl::OkStatus();
  return Bad(absl::StrCat(field, " is ", value, "; it is a part of the whole: ", zero_allowed ? "0 to 1" : "above 0, at most 1"));
}

absl::Status CheckParts(const std::string& where, const CardParts& parts) {
  for (const auto& [field, part] : {std::pair("matrix_part", parts.matrix), std::pair("attention_part", parts.attention),
                                    std::pair("memory_part", parts.memory)}) {
    MOTLEY_RETURN_IF_ERROR(CheckPart(absl::StrCat(where, ": ", field), part, false));
  }
  MOTLEY_RETURN_IF_ERROR(CheckRange(where, "attention_tokens", parts.attention_tokens, 0, kMostAttentionTokens, "tokens"));
  return CheckRange(where, "deviation", parts.deviation, 0, kMostDeviation, "of a logarithm");
}

absl::Status CheckKind(const CardKind& kind) {
  const std::string where = absl::StrCat("card ", kind.name);
  if (kind.name.empty()) return Bad("a card has no name");
  MOTLEY_RETURN_IF_ERROR(CheckRange(where, "fp32_flops", kind.fp32_flops, kLeastFlops, kMostFlops, "FLOP/s"));
  for (const auto& [field, flops] : {std::pair("tf32_flops", kind.tf32_flops), std::pair("fp16_flops", kind.fp16_flops),
                                     std::pair("bf16_flops", kind.bf16_flops)}) {
    if (flops != 0) MOTLEY_RETURN_IF_ERROR(CheckRange(where, field, flops, kLeastFlops, kMostFlops, "FLOP/s (0 = no such unit)"));
  }
  MOTLEY_RETURN_IF_ERROR(
      CheckRange(where, "memory_bytes", static_cast<double>(kind.memory_bytes), kLeastDeviceBytes, kMostDeviceBytes, "bytes"));
  MOTLEY_RETURN_IF_ERROR(
      CheckRange(where, "memory_bytes_per_second", kind.memory_bytes_per_second, kLeastRate, kMostMemoryRate, "bytes/s"));
  return CheckParts(where, kind.parts);
}

absl::Status CheckPcieRoots(const Cluster& cluster, const ClusterNode& node, const std::string& where) {
  std::set<int> seen;
  for (const std::vector<int>& root : node.pcie_roots) {
    for (const int device : root) {
      if (std::find(node.devices.begin(), node.devices.end(), device) == node.devices.end()) {
        return Bad(absl::StrCat(where, ": pcie_roots names device ", device, ", which is not the node's"));
      }
      if (!seen.insert(device).second) {
        return Bad(absl::StrCat(where, ": pcie_roots lists ", cluster.devices[device].id.value(), " twice"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlowPairs(const ClusterNode& node, const std::string& where) {
  const auto is_own = [&node](int device) {
    return std::find(node.devices.begin(), node.devices.end(), device) != node.devices.end();
  };
  const DevicePair* last = nullptr;
  for (const DevicePair& pair : node.slow_pairs) {
    if (!is_own(pair.a) || !is_own(pair.b) || pair.a >= pair.b) {
      return Bad(absl::StrCat(where, ": a link between devices ", pair.a, " and ", pair.b, ", which are not two of the node's"));
    }
    if (last != nullptr && std::pair(last->a, last->b) >= std::pair(pair.a, pair.b)) {
      return Bad(absl::StrCat(where, ": the link between devices ", pair.a, " and ", pair.b, " is there twice"));
    }
    last = &pair;
    MOTLEY_RETURN_IF_ERROR(
        CheckRange(where, "link of two devices", pair.bytes_per_second, kLeastRate, kMostDeviceLinkRate, "bytes/s"));
    MOTLEY_RETURN_IF_ERROR(CheckRange(where, "latency of two devices", pair.latency_seconds, 0, kMostLatencySeconds, "seconds"));
  }
  return absl::OkStatus();
}

absl::Status CheckNode(const Cluster& cluster, const ClusterNode& node) {
  const std::string where = absl::StrCat("node ", node.name.value());
  if (node.name.empty()) return Bad("a node has no name");
  if (node.devices.empty()) return Bad(absl::StrCat(where, ": has no devices"));
  if (node.region < 0 || node.region >= static_cast<int>(cluster.regions.size()))
    return Bad(absl::StrCat(where, ": its region does not exist"));
  MOTLEY_RETURN_IF_ERROR(
      CheckRange(where, "device link", node.device_link_bytes_per_second, kLeastRate, kMostDeviceLinkRate, "bytes/s"));
  if (node.nic_bytes_per_second != 0) {
    MOTLEY_RETURN_IF_ERROR(CheckRange(where, "NIC", node.nic_bytes_per_second, kLeastRate, kMostNicRate, "bytes/s"));
  }
  if (node.host_link_bytes_per_second != 0) {
    MOTLEY_RETURN_IF_ERROR(
        CheckRange(where, "host link", node.host_link_bytes_per_second, kLeastRate, kMostDeviceLinkRate, "bytes/s"));
  }
  MOTLEY_RETURN_IF_ERROR(CheckRange(where, "device link latency", node.device_link_latency_seconds, 0, kMostLatencySeconds, "s"));
  MOTLEY_RETURN_IF_ERROR(CheckPart(absl::StrCat(where, ": collective_part"), node.collective_part, false));
  MOTLEY_RETURN_IF_ERROR(CheckPart(absl::StrCat(where, ": hidden_part"), node.hidden_part, true));
  MOTLEY_RETURN_IF_ERROR(CheckRange(where, "NIC latency", node.nic_latency_seconds, 0, kMostLatencySeconds, "s"));
  MOTLEY_RETURN_IF_ERROR(CheckRange(where, "price", node.price_per_hour, 0, 1e6, "an hour"));
  MOTLEY_RETURN_IF_ERROR(
      CheckRange(where, "host memory", static_cast<double>(node.host_memory_bytes), 0, kMostHostBytes, "bytes"));
  if (node.host_memory_bytes > 0 && node.host_link_bytes_per_second == 0) {
    return Bad(absl::StrCat(where, ": has host memory but no host link; give its rate, or no host memory"));
  }
  MOTLEY_RETURN_IF_ERROR(CheckSlowPairs(node, where));
  return CheckPcieRoots(cluster, node, where);
}

// A square matrix by nodes or regions: empty, or symmetric with entries in [0, most] off the diagonal; 0 = not known.
absl::Status CheckMatrix(const std::vector<std::vector<double>>& matrix, size_t size, double most, const std::string& what,
                         const std::vector<std::string>& names) {
  if (matrix.empty()) return absl::OkStatus();
  if (matrix.size() != size) return Bad(absl::StrCat(what, ": has ", matrix.size(), " rows for ", size, " of them"));
  for (size_t a = 0; a < size; ++a) {
    if (matrix[a].size() != size)
      return Bad(absl::StrCat(what, ": row ", names[a], " has ", matrix[a].size(), " entries for ", size));
  }
  for (size_t a = 0; a < size; ++a) {
    for (size_t b = 0; b < size; ++b) {
      const double value = matrix[a][b];
      const std::string where = absl::StrCat(what, " from ", names[a], " to ", names[b]);
      if (!std::isfinite(value) || value < 0 || value > most) {
        return Bad(absl::StrCat(where, ": ", value, " makes no sense; it must lie between 0 (not known) and ", most));
      }
      if (value != matrix[b][a])
        return Bad(absl::StrCat(where, " is ", value, ", but ", matrix[b][a], " the other way; make it symmetric"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDevices(const Cluster& cluster) {
  std::set<std::string> ids;
  size_t next = 0;
  for (size_t n = 0; n < cluster.nodes.size(); ++n) {
    for (const int d : cluster.nodes[n].devices) {
      if (d != static_cast<int>(next))
        return Bad(absl::StrCat("node ", cluster.nodes[n].name.value(), ": devices must be listed in the order of nodes"));
      if (next >= cluster.devices.size()) return Bad("a node lists a device that does not exist");
      const ClusterDevice& device = cluster.devices[next++];
      if (device.id.empty() || !ids.insert(device.id.value()).second) {
        return Bad(absl::StrCat("device '", device.id.value(), "': names must be given and distinct"));
      }
      if (device.node != static_cast<int>(n))
        return Bad(absl::StrCat("device ", device.id.value(), ": its node does not list it"));
      if (device.kind < 0 || device.kind >= static_cast<int>(cluster.kinds.size())) {
        return Bad(absl::StrCat("device ", device.id.value(), ": its card does not exist"));
      }
    }
  }
  if (next != cluster.devices.size()) return Bad("a device belongs to no node");
  return absl::OkStatus();
}

// Every two nodes need a NIC each, or a rate of their own in the matrix.
absl::Status CheckConnected(const Cluster& cluster) {
  for (size_t a = 0; a < cluster.nodes.size(); ++a) {
    for (size_t b = a + 1; b < cluster.nodes.size(); ++b) {
      if (cluster.nodes[a].nic_bytes_per_second > 0 && cluster.nodes[b].nic_bytes_per_second > 0) continue;
      if (!cluster.node_bytes_per_second.empty() && cluster.node_bytes_per_second[a][b] > 0) continue;
      return Bad(absl::StrCat("no link between nodes ", cluster.nodes[a].name.value(), " and ", cluster.nodes[b].name.value(),
                              "; give both a NIC (nic_gbit_per_second), or the pair a [[link]]"));
    }
  }
  return absl::OkStatus();
}

// `matrix` by the kept rows and columns; empty stays empty.
std::vector<std::vector<double>> Keep(const std::vector<std::vector<double>>& matrix, const std::vector<int>& kept) {
  std::vector<std::vector<double>> result;
  if (matrix.empty()) return result;
  for (const int a : kept) {
    std::vector<double>& row = result.emplace_back();
    for (const int b : kept) row.push_back(matrix[a][b]);
  }
  return result;
}

// New index by old one: used entries keep their order, the others are -1.
std::vector<int> Renumber(const std::vector<bool>& used, std::vector<int>* kept) {
  std::vector<int> index(used.size(), -1);
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    index[i] = static_cast<int>(kept->size());
    kept->push_back(static_cast<int>(i));
  }
  return index;
}

}  // namespace

void SetCardLinks(const CardLinks& links, ClusterNode* node) {
  node->device_link_bytes_per_second = links.bytes_per_second;
  node->collective_part = links.collective_part;
  node->hidden_part = links.hidden_part;
}

double Cluster::FlopsPerSecond(int kind, DType dtype) const {
  const CardKind& card = kinds[kind];
  double flops = card.fp32_flops;
  if (dtype == DType::kFloat16) flops = card.fp16_flops;
  if (dtype == DType::kBFloat16) flops = card.bf16_flops;
  return flops > 0 ? flops : card.fp32_flops;
}

double Cluster::PeakFlops(int kind, DType dtype) const {
  if (!kinds[kind].peak_known) return 0;
  return kinds[kind].peak_flops > 0 ? kinds[kind].peak_flops : FlopsPerSecond(kind, dtype);
}

double Cluster::price_per_hour() const {
  double sum = 0;
  for (const ClusterNode& node : nodes) sum += node.price_per_hour;
  return sum;
}

absl::Status Validate(const Cluster& cluster) {
  if (cluster.nodes.empty() || cluster.devices.empty()) return Bad("the cluster has no devices; add a [[node]] with gpus");
  if (cluster.regions.empty()) return Bad("the cluster has no region");
  for (size_t i = 0; i < cluster.kinds.size(); ++i) {
    MOTLEY_RETURN_IF_ERROR(CheckKind(cluster.kinds[i]));
    for (size_t j = 0; j < i; ++j) {
      if (cluster.kinds[i].name == cluster.kinds[j].name)
        return Bad(absl::StrCat("card ", cluster.kinds[i].name, ": is there twice"));
    }
  }
  std::vector<std::string> names;
  for (const ClusterNode& node : cluster.nodes) {
    MOTLEY_RETURN_IF_ERROR(CheckNode(cluster, node));
    names.push_back(node.name.value());
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
  if (twin != sorted.end()) return Bad(absl::StrCat("node ", *twin, ": two nodes have this name"));
  MOTLEY_RETURN_IF_ERROR(CheckDevices(cluster));
  MOTLEY_RETURN_IF_ERROR(CheckMatrix(cluster.node_bytes_per_second, names.size(), kMostNicRate, "bytes/s", names));
  MOTLEY_RETURN_IF_ERROR(CheckMatrix(cluster.node_latency_seconds, names.size(), kMostLatencySeconds, "latency", names));
  MOTLEY_RETURN_IF_ERROR(
      CheckMatrix(cluster.region_bytes_per_second, cluster.regions.size(), kMostNicRate, "bytes/s", cluster.regions));
  MOTLEY_RETURN_IF_ERROR(
      CheckMatrix(cluster.region_latency_seconds, cluster.regions.size(), kMostLatencySeconds, "latency", cluster.regions));
  MOTLEY_RETURN_IF_ERROR(CheckConnected(cluster));
  MOTLEY_RETURN_IF_ERROR(Validate(cluster.collectives, absl::StrCat("collectives measured on ", cluster.name)));
  MOTLEY_RETURN_IF_ERROR(CheckPart("overlap_efficiency", cluster.overlap_efficiency, true));
  MOTLEY_RETURN_IF_ERROR(CheckPart("collective_efficiency", cluster.collective_efficiency, false));
  return CheckPart("usable_memory", cluster.usable_memory, false);
}

Cluster Restrict(const Cluster& cluster, const std::vector<int>& devices) {
  std::vector<bool> kind_used(cluster.kinds.size()), node_used(cluster.nodes.size()), region_used(cluster.regions.size());
  std::vector<bool> device_used(cluster.devices.size());
  for (const int d : devices) {
    const ClusterDevice& device = cluster.devices[d];
    device_used[d] = true;
    kind_used[device.kind] = true;
    node_used[device.node] = true;
    region_used[cluster.nodes[device.node].region] = true;
  }
  std::vector<int> kept_kinds, kept_nodes, kept_regions, kept_devices;
  const std::vector<int> kind_of = Renumber(kind_used, &kept_kinds), node_of = Renumber(node_used, &kept_nodes);
  const std::vector<int> region_of = Renumber(region_used, &kept_regions), device_of = Renumber(device_used, &kept_devices);

  Cluster result = cluster;  // name, efficiencies and notes stay
  result.kinds.clear();
  result.nodes.clear();
  result.devices.clear();
  result.regions.clear();
  for (const int k : kept_kinds) result.kinds.push_back(cluster.kinds[k]);
  for (const int r : kept_regions) result.regions.push_back(cluster.regions[r]);
  const auto renumbered = [&](const std::vector<int>& old) {
    std::vector<int> fresh;
    for (const int d : old) {
      if (device_of[d] >= 0) fresh.push_back(device_of[d]);
    }
    return fresh;
  };
  for (const int n : kept_nodes) {
    ClusterNode& node = result.nodes.emplace_back(cluster.nodes[n]);
    node.region = region_of[node.region];
    node.devices = renumbered(node.devices);
    for (std::vector<int>& root : node.pcie_roots) root = renumbered(root);
    std::erase_if(node.pcie_roots, [](const std::vector<int>& root) { return root.empty(); });
    std::erase_if(node.slow_pairs, [&](const DevicePair& pair) { return device_of[pair.a] < 0 || device_of[pair.b] < 0; });
    for (DevicePair& pair : node.slow_pairs) pair.a = device_of[pair.a], pair.b = device_of[pair.b];
  }
  for (const int d : kept_devices) {
    ClusterDevice& device = result.devices.emplace_back(cluster.devices[d]);
    device.kind = kind_of[device.kind];
    device.node = node_of[device.node];
  }
  result.node_bytes_per_second = Keep(cluster.node_bytes_per_second, kept_nodes);
  result.node_latency_seconds = Keep(cluster.node_latency_seconds, kept_nodes);
  result.region_bytes_per_second = Keep(cluster.region_bytes_per_second, kept_regions);
  result.region_latency_seconds = Keep(cluster.region_latency_seconds, kept_regions);
  if (result.devices.size() < cluster.devices.size()) result.collectives = {};
  return result;
}

std::string ClusterInWords(const Cluster& cluster) {
  const std::string prefix = kClusterOfJob;
  if (!cluster.name.starts_with(prefix)) return absl::StrCat("cluster ", cluster.name);
  return absl::StrCat("cluster of job ", cluster.name.substr(prefix.size()));
}

std::string KindText(const Cluster& cluster, int kind) {
  const CardKind& of = cluster.kinds[kind];
  const auto first = std::find_if(cluster.devices.begin(), cluster.devices.end(),
                                  [&](const ClusterDevice& device) { return device.kind == kind; });
  if (of.card.empty() || first == cluster.devices.end()) return of.name;
  return absl::StrCat(of.card, " like ", first->id.value());
}

}  // namespace motley::planner
