// Random tiny clusters with a tiny model, for comparisons with exhaustive searches: unlike cards, fast and slow links, short
// memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/cluster/cluster_file.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Inclusive.
struct TinyLimits {
  int least_devices = 2, most_devices = 3;
  int least_layers = 2, most_layers = 3;
  int least_batch = 2, most_batch = 4;
};

class TinySettings {
 public:
  explicit TinySettings(uint64_t seed, TinyLimits limits = {}) : random_(seed), limits_(limits) {}

  // Cards of one to three nodes; every third setting has so little memory that its state alone takes much of it, every fourth
  // knows host memory.
  std::unique_ptr<Setting> Next() {
    const int devices = Pick(limits_.least_devices, limits_.most_devices);
    absl::StatusOr<Cluster> cluster = ParseCluster(NextCluster(devices), "tiny");
    if (!cluster.ok()) throw std::runtime_error(std::string(cluster.status().message()));
    const Workload workload = NextWorkload();
    if (Pick(0, 2) == 0) Shorten(workload, &*cluster);
    auto setting = Setting::Create(*std::move(cluster), workload, {}, nullptr);
    if (!setting.ok()) throw std::runtime_error(std::string(setting.status().message()));
    return *std::move(setting);
  }

 private:
  int Pick(int low, int high) { return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1)); }
  template <typename T, size_t n>
  T Of(const std::array<T, n>& choices) {
    return choices[static_cast<size_t>(Pick(0, static_cast<int>(n) - 1))];
  }

  // Half of the nodes have cards of one kind only.
  std::string NextCluster(int devices) {
    constexpr std::array<const char*, 7> kCards = {"A100-40GB", "V100-16GB", "T4", "RTX-3090", "L4", "A6000", "P100"};
    constexpr std::array<double, 5> kNics = {1, 5, 25, 100, 400};
    std::string text = absl::StrCat("name = \"tiny\"\n[defaults]\nnic_gbit_per_second = ", Of(kNics), "\n");
    if (Pick(0, 3) == 0) absl::StrAppend(&text, "host_memory_gib = 64\n");
    for (int left = devices; left > 0;) {
      const int own = Pick(1, left);
      const bool alike = Pick(0, 1) == 0;
      const char* card = Of(kCards);
      std::string cards;
      for (int d = 0; d < own; ++d) {
        absl::StrAppend(&cards, d > 0 ? ", " : "", "\"", card, "\"");
        if (!alike) card = Of(kCards);
      }
      absl::StrAppend(&text, "[[node]]\ngpus = [", cards, "]\n");
      left -= own;
    }
    return text;
  }

  Workload NextWorkload() {
    Workload workload;
    workload.model_name = "tiny";
    ModelShape& model = workload.model;
    model.family = Pick(0, 1) == 0 ? ModelFamily::kGpt2 : ModelFamily::kLlama;
    model.num_heads = model.num_kv_heads = 4;
    model.hidden_size = Of(std::array<int64_t, 3>{512, 1024, 2048});
    model.head_dim = model.hidden_size / model.num_heads;
    model.intermediate_size = 4 * model.hidden_size;
    model.num_layers = Pick(limits_.least_layers, limits_.most_layers);
    model.vocab_size = Of(std::array<int64_t, 2>{1024, 16384});
    model.max_positions = 2048;
    model.tie_embeddings = Pick(0, 1) == 0;
    workload.global_batch = Pick(limits_.least_batch, limits_.most_batch);
    workload.seq_len = Of(std::array<int64_t, 3>{256, 1024, 2048});
    workload.dtype = DType::kFloat16;
    return workload;
  }

  // Memory beside the context: 1.2 to 3 times the training state over all cards.
  void Shorten(const Workload& workload, Cluster* cluster) {
    const Costs costs = Costs::Create(*cluster, workload, nullptr).value();
    const double state = static_cast<double>(costs.TotalElements() * costs.StateBytesPerElement());
    const double factor = 1.2 + 0.1 * Pick(0, 18);
    for (size_t k = 0; k < cluster->kinds.size(); ++k) {
      const double own = factor * (0.5 + 0.25 * Pick(0, 4)) * state / static_cast<double>(cluster->devices.size());
      const double bytes = (static_cast<double>(costs.ContextBytes(static_cast<int>(k))) + own) / cluster->usable_memory;
      cluster->kinds[k].memory_bytes = std::min(cluster->kinds[k].memory_bytes, static_cast<int64_t>(bytes));
    }
  }

  std::mt19937_64 random_;
  const TinyLimits limits_;
};

}  // namespace motley::planner
