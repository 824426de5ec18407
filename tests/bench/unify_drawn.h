// Clusters that nobody has seen: of 2 to 8 nodes with 1 to 8 cards each, of what `motley cards` lists, behind 1 to 100 Gbit/s,
// with a model of the presets that they can hold.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/dtype.h"
#include "common/device/device_table.h"
#include "common/model/parameters.h"
#include "planner/costs/workload.h"

namespace motley::planner {

struct DrawnRow {
  std::string toml, what;  // a cluster file; its cards and network for people
  std::string model;
  int64_t global_batch = 0, seq_len = 0;
  std::string dtype;
};

// The same rows for the same seed with any standard library: no distribution of its.
class RowDrawer {
 public:
  // `with_hosts`: all nodes offer host memory and say their link to it, PCIe 3 x4 to 5 x16; models may be larger, and there are
  // at most 4 nodes of 4 cards, as each is planned twice.
  explicit RowDrawer(uint64_t seed, bool with_hosts = false) : with_hosts_(with_hosts), random_(seed) {}

  DrawnRow Next() {
    DrawnRow row;
    const double gbit = std::round(std::pow(10.0, 2 * Part()) * 10) / 10;
    row.toml = absl::StrCat("name = \"drawn\"\n[defaults]\nnic_gbit_per_second = ", gbit, "\n");
    row.what = absl::StrCat(gbit, " Gbit/s");
    if (with_hosts_) {
      const uint64_t link = uint64_t{4} << Below(5);
      absl::StrAppend(&row.toml, "host_memory_gib = 512\nhost_link_gb_per_second = ", link, "\n");
      absl::StrAppend(&row.what, ", hosts at ", link, " GB/s");
    } else if (Below(3) == 0) {
      absl::StrAppend(&row.toml, "host_memory_gib = 256\n");
    }
    double memory = 0;
    const size_t nodes = 2 + Below(with_hosts_ ? 3 : 7);
    for (size_t n = 0; n < nodes; ++n) {
      const GpuSpec& card = GpuTable()[Below(GpuTable().size())];
      const size_t count = 1 + Below(with_hosts_ ? 4 : 8);
      memory += static_cast<double>(card.memory_bytes) * static_cast<double>(count);
      absl::StrAppend(&row.toml, "[[node]]\nname = \"n", n, "\"\ngpus = [{card = \"", std::string(card.name),
                      "\", count = ", count, "}]\n");
      absl::StrAppend(&row.what, ", ", count, " x ", std::string(card.name));
    }
    row.dtype = DTypeName(std::array{DType::kFloat32, DType::kFloat16, DType::kBFloat16}[Below(3)]);
    DrawWorkload(memory, &row);
    return row;
  }

 private:
  uint64_t Below(uint64_t count) { return random_() % count; }
  double Part() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

  // Of models too large for the cards' memory there would be no plan to compare.
  void DrawWorkload(double memory, DrawnRow* row) {
    constexpr double kStateBytes =
        18;  // of a parameter, as the engine keeps half types, and no more than this part of the memory
    const double part = with_hosts_ ? 1.0 : 0.7;
    std::vector<const ModelPreset*> fitting;
    for (const ModelPreset& preset : ModelPresets()) {
      if (kStateBytes * static_cast<double>(NumParameters(preset.model)) < part * memory) fitting.push_back(&preset);
    }
    const ModelPreset& preset = *fitting[Below(fitting.size())];
    row->model = preset.name;
    row->seq_len = std::min<int64_t>(int64_t{512} << Below(3), preset.model.max_positions);
    row->global_batch = int64_t{32} << Below(5);
  }

  const bool with_hosts_;
  std::mt19937_64 random_;
};

}  // namespace motley::planner
