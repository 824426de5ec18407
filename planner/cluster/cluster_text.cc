#include "planner/cluster/cluster_text.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/parse_json.h"
#include "planner/cluster/cluster_units.h"

namespace motley::planner {
namespace {

std::string QuotedList(const std::vector<std::string>& texts) {
  return absl::StrCat("[", absl::StrJoin(texts, ", ", [](std::string* out, const std::string& text) { *out += JsonText(text); }),
                      "]");
}

// The shortest text that is read back as the same number.
std::string Number(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  return std::string(digits, end.ptr);
}

void Line(const char* key, double value, double unit, std::string* out) {
  absl::StrAppend(out, key, " = ", Number(value / unit), "\n");
}

// What cannot be 0 in a file is left out where it is 0: not known, or not there.
void LineIfKnown(const char* key, double value, double unit, std::string* out) {
  if (value > 0) Line(key, value, unit, out);
}

void LineUnless(double otherwise, const char* key, double value, std::string* out) {
  if (value != otherwise) Line(key, value, 1, out);
}

void AddParts(const CardParts& parts, std::string* out) {
  const CardParts otherwise;
  LineUnless(otherwise.matrix, "matrix_part", parts.matrix, out);
  LineUnless(otherwise.attention, "attention_part", parts.attention, out);
  LineUnless(otherwise.attention_tokens, "attention_tokens", parts.attention_tokens, out);
  LineUnless(otherwise.memory, "memory_part", parts.memory, out);
  LineUnless(otherwise.deviation, "deviation", parts.deviation, out);
}

void AddCards(const Cluster& cluster, std::string* out) {
  for (size_t k = 0; k < cluster.kinds.size(); ++k) {
    const CardKind& kind = cluster.kinds[k];
    double link = kLeastRate;  // nodes say their own below; a card must have one
    for (const ClusterDevice& device : cluster.devices) {
      if (device.kind == static_cast<int>(k)) {
        link = std::max(link, cluster.nodes[device.node].device_link_bytes_per_second);
      }
    }
    absl::StrAppend(out, "\n[[card]]\nname = ", JsonText(kind.name), "\n");
    Line("fp32_tflops", kind.fp32_flops, kTera, out);
    LineIfKnown("tf32_tflops", kind.tf32_flops, kTera, out);
    LineIfKnown("fp16_tflops", kind.fp16_flops, kTera, out);
    LineIfKnown("bf16_tflops", kind.bf16_flops, kTera, out);
    LineIfKnown("peak_tflops", kind.peak_flops, kTera, out);
    if (!kind.peak_known) Line("peak_tflops", 0, kTera, out);
    Line("memory_gib", static_cast<double>(kind.memory_bytes), kGiB, out);
    Line("memory_gb_per_second", kind.memory_bytes_per_second, kGiga, out);
    Line("link_gb_per_second", link, kGiga, out);
    AddParts(kind.parts, out);
    if (kind.nccl != NcclPath::kNone) {
      absl::StrAppend(out, "nccl = ", JsonText(kNcclPathNames[static_cast<size_t>(kind.nccl)]), "\n");
    }
    if (!kind.launches_ahead) absl::StrAppend(out, "launches_ahead = false\n");
  }
}

// By count where names are those that a file gives by itself, else one by one with its name.
std::string Gpus(const Cluster& cluster, const ClusterNode& node) {
  std::vector<std::string> entries;
  for (size_t i = 0; i < node.devices.size();) {
    const auto at = [&](size_t d) -> const ClusterDevice& { return cluster.devices[node.devices[d]]; };
    const auto by_place = [&](size_t d) { return at(d).id.value() == absl::StrCat(node.name.value(), "/gpu", d); };
    const std::string card = JsonText(cluster.kinds[at(i).kind].name);
    if (!by_place(i)) {
      const std::string own = at(i).id.value().substr(node.name.value().size() + 1);
      entries.push_back(absl::StrCat("{card = ", card, ", name = ", JsonText(own), "}"));
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < node.devices.size() && by_place(end) && at(end).kind == at(i).kind) ++end;
    entries.push_back(end == i + 1 ? card : absl::StrCat("{card = ", card, ", count = ", end - i, "}"));
    i = end;
  }
  return absl::StrJoin(entries, ", ");
}

void AddNode(const Cluster& cluster, const ClusterNode& node, std::string* out) {
  absl::StrAppend(out, "\n[[node]]\nname = ", JsonText(node.name.value()), "\ngpus = [", Gpus(cluster, node), "]\n");
  if (cluster.regions.size() > 1) {
    absl::StrAppend(out, "region = ", JsonText(cluster.regions[node.region]), "\n");
  }
  LineIfKnown("nic_gb_per_second", node.nic_bytes_per_second, kGiga, out);
  Line("nic_latency_us", node.nic_latency_seconds, kMicro, out);
  Line("device_link_gb_per_second", node.device_link_bytes_per_second, kGiga, out);
  Line("device_link_latency_us", node.device_link_latency_seconds, kMicro, out);
  LineUnless(1, "collective_part", node.collective_part, out);
  LineUnless(1, "hidden_part", node.hidden_part, out);
  LineIfKnown("host_link_gb_per_second", node.host_link_bytes_per_second, kGiga, out);
  LineIfKnown("host_memory_gib", static_cast<double>(node.host_memory_bytes), kGiB, out);
  LineIfKnown("usd_per_hour", node.price_per_hour, 1, out);
  if (node.pcie_roots.empty()) return;
  std::vector<std::string> roots;
  for (const std::vector<int>& root : node.pcie_roots) {
    std::vector<int> places;
    for (const int device : root) places.push_back(device - node.devices.front());
    roots.push_back(absl::StrCat("[", absl::StrJoin(places, ", "), "]"));
  }
  absl::StrAppend(out, "pcie_roots = [", absl::StrJoin(roots, ", "), "]\n");
}

void AddSlowPairs(const Cluster& cluster, const ClusterNode& node, std::string* out) {
  for (const DevicePair& pair : node.slow_pairs) {
    absl::StrAppend(out, "\n[[device_link]]\ndevices = ",
                    QuotedList({cluster.devices[pair.a].id.value(), cluster.devices[pair.b].id.value()}), "\n");
    Line("gb_per_second", pair.bytes_per_second, kGiga, out);
    Line("latency_us", pair.latency_seconds, kMicro, out);
  }
}

void AddLinks(const char* section, const char* key, const std::vector<std::string>& names,
              const std::vector<std::vector<double>>& rates, const std::vector<std::vector<double>>& latencies,
              std::string* out) {
  for (size_t a = 0; a < names.size(); ++a) {
    for (size_t b = a + 1; b < names.size(); ++b) {
      const double rate = rates.empty() ? 0 : rates[a][b], latency = latencies.empty() ? 0 : latencies[a][b];
      if (rate <= 0 && latency <= 0) continue;
      absl::StrAppend(out, "\n[[", section, "]]\n", key, " = ", QuotedList({names[a], names[b]}), "\n");
      LineIfKnown("gb_per_second", rate, kGiga, out);
      LineIfKnown("latency_us", latency, kMicro, out);
    }
  }
}

void AddCollectives(const CollectiveProfile& collectives, std::string* out) {
  for (const CollectivePoint& point : collectives.points) {
    absl::StrAppend(out, "\n[[collective]]\nbytes = ", point.bytes, "\n");
    Line("largest_share", point.skew, 1, out);
    Line("all_gather_us", point.all_gather_seconds, kMicro, out);
    Line("reduce_scatter_us", point.reduce_scatter_seconds, kMicro, out);
  }
}

}  // namespace

std::string ToToml(const Cluster& cluster) {
  std::string out = absl::StrCat("name = ", JsonText(cluster.name), "\n");
  if (!cluster.notes.empty()) absl::StrAppend(&out, "notes = ", QuotedList(cluster.notes), "\n");
  Line("usable_memory", cluster.usable_memory, 1, &out);
  Line("collective_efficiency", cluster.collective_efficiency, 1, &out);
  Line("overlap_efficiency", cluster.overlap_efficiency, 1, &out);
  if (!cluster.collectives.points.empty()) Line("scalars_us", cluster.collectives.barrier_seconds, kMicro, &out);
  AddCards(cluster, &out);
  std::vector<std::string> nodes;
  for (const ClusterNode& node : cluster.nodes) {
    AddNode(cluster, node, &out);
    nodes.push_back(node.name.value());
  }
  for (const ClusterNode& node : cluster.nodes) AddSlowPairs(cluster, node, &out);
  AddLinks("link", "nodes", nodes, cluster.node_bytes_per_second, cluster.node_latency_seconds, &out);
  AddLinks("region_link", "regions", cluster.regions, cluster.region_bytes_per_second, cluster.region_latency_seconds, &out);
  AddCollectives(cluster.collectives, &out);
  return out;
}

}  // namespace motley::planner
