// Which baselines of Cephalo's tables 4 and 8 run out of memory on its cluster A, from the compute memory that the authors
// measured (model_memory.json, GiB over the microbatch, all layers checkpointed, boundaries in host memory) and 16 bytes a
// parameter of state.
//
// The baselines keep boundaries on the card; only Cephalo offloads them. What each system stores and computes on a card:
//   FSDP          state / 8, batch / 8
//   Whale         the whole state, a batch in proportion to speed
//   HAP           two tensor-parallel parts, one a node, in proportion to speed; data parallel inside the node
//   Megatron-Het  two pipeline stages, one a node, in proportion to speed; state replicated inside the node, microbatches of 1
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/cluster/cluster.h"
#include "planner/costs/costs.h"
#include "tests/bench/papers_tables.h"

namespace motley::bench {

inline constexpr double kGiBytes = 1024.0 * 1024 * 1024;

struct MeasuredMemory {
  double parameters = 0;
  std::vector<double> gib;  // at microbatch 1, 2, ...
  double At(double samples) const {
    const size_t n = gib.size();
    if (samples >= static_cast<double>(n)) return gib[n - 1] + (samples - static_cast<double>(n)) * (gib[n - 1] - gib[n - 2]);
    const auto i = static_cast<size_t>(samples < 1 ? 1 : samples);
    return gib[i - 1] + (samples - static_cast<double>(i)) * (gib[i] - gib[i - 1]);
  }
};

// By the published model's name; empty when the file is not there or not of that form.
inline std::map<std::string, MeasuredMemory> ReadMeasuredMemory(const std::string& path) {
  std::map<std::string, MeasuredMemory> result;
  std::ifstream file(path);
  const nlohmann::json root = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || !root.contains("paper")) return result;
  for (const auto& [model, json] : root["paper"].items()) {
    const nlohmann::json series =
        json.value("profiled_compute_memory", nlohmann::json::object()).value("float32", nlohmann::json());
    if (!series.is_array() || series.size() < 2) continue;
    result[model] = {json.value("parameters", 0.0), series.get<std::vector<double>>()};
  }
  return result;
}

// Data-sheet speed, which the baselines divide by, and memory less the context.
struct CardsOfA {
  std::vector<double> flops, gib;  // by device
  std::vector<int> node;
  CardsOfA(const planner::Cluster& cluster, int64_t context_bytes) {
    for (const planner::ClusterDevice& device : cluster.devices) {
      const planner::CardKind& kind = cluster.kinds[device.kind];
      flops.push_back(kind.fp32_flops);
      gib.push_back(static_cast<double>(kind.memory_bytes - context_bytes) / kGiBytes);
      node.push_back(device.node);
    }
  }
  double Sum(int of_node = -1) const {
    double sum = 0;
    for (size_t i = 0; i < flops.size(); ++i) sum += of_node < 0 || node[i] == of_node ? flops[i] : 0;
    return sum;
  }
};

// Of the fullest card, GiB.
struct MemoryVerdict {
  bool overflows = false;
  double needs = 0, has = 0;
};

inline MemoryVerdict FullestCard(std::string_view system, const Cell& cell, const CardsOfA& cards, const MeasuredMemory& memory,
                                 const planner::Costs& costs) {
  using planner::OpSet;
  const double state = 16 * memory.parameters / kGiBytes;
  const double layers = static_cast<double>(costs.workload().model.num_layers);
  const double boundaries = layers * static_cast<double>(costs.BoundaryBytes(1)) / kGiBytes;  // of a sample
  const auto whole = static_cast<double>(costs.SavedBytes(0, UnitKind::kLayer, OpSet::None(), 1));
  MemoryVerdict worst{false, 0, 1};
  for (size_t i = 0; i < cards.flops.size(); ++i) {
    const double node_part = cards.Sum(cards.node[i]) / cards.Sum();
    const double in_node = cards.flops[i] / cards.Sum(cards.node[i]);
    double needs = 0;
    if (system == "FSDP") {
      const double batch = cell.batch / static_cast<double>(cards.flops.size());
      needs = state / static_cast<double>(cards.flops.size()) + memory.At(batch) + boundaries * batch;
    } else if (system == "Whale") {
      const double batch = cell.batch * cards.flops[i] / cards.Sum();
      needs = state + memory.At(batch) + boundaries * batch;
    } else if (system == "HAP") {
      const double batch = cell.batch * in_node;
      const double part = static_cast<double>(costs.SavedBytes(0, UnitKind::kLayer, OpSet::None(), 1, node_part)) / whole;
      needs = state * node_part + memory.At(1) + part * (memory.At(batch) - memory.At(1)) + boundaries * batch;
    } else {
      needs = state * node_part + memory.At(1) + boundaries * node_part;
    }
    if (needs / cards.gib[i] > worst.needs / worst.has) worst = {needs > cards.gib[i], needs, cards.gib[i]};
  }
  return worst;
}

}  // namespace motley::bench
