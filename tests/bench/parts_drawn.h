// Ordinary labs that nobody has seen: 2 to 6 nodes (or as asked), at most 16 cards of 13 models, 1 to 100 Gbit/s, with a model
// of today's small ones, tied and not; and the parts of a lab that are asked about.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace motley::planner {

struct DrawnLab {
  std::string toml, what;  // a cluster file; its cards and network for people
  std::string model;
  int64_t global_batch = 0, seq_len = 0;
  std::string dtype;
  size_t nodes = 0;
  bool runnable = false;
};

// The same labs for the same seed with any standard library: no distribution of its.
class LabDrawer {
 public:
  explicit LabDrawer(uint64_t seed) : random_(seed) {}

  DrawnLab Next(size_t least_nodes, size_t most_nodes) {
    constexpr std::array kCards = {"A100-40GB",   "A6000",     "L4",        "A10", "RTX-4090", "RTX-3090", "RTX-3080",
                                   "RTX-2080-Ti", "V100-32GB", "V100-16GB", "T4",  "P40",      "P100"};
    constexpr std::array kModels = {"llama3.2-1b", "qwen2.5-0.5b", "gpt2-774m", "llama-1.1b", "qwen2.5-1.5b", "llama-3b"};
    constexpr size_t kMostDevices = 16;
    DrawnLab lab;
    lab.runnable = Below(2) == 0;
    lab.nodes = least_nodes + Below(most_nodes - least_nodes + 1);
    const double gbit = std::round(std::pow(10.0, 2 * Part()) * 10) / 10;
    lab.toml = absl::StrCat("name = \"drawn\"\n[defaults]\nnic_gbit_per_second = ", gbit, "\n");
    if (Below(3) == 0) absl::StrAppend(&lab.toml, "host_memory_gib = 64\n");
    lab.what = absl::StrCat(gbit, " Gbit/s");
    size_t left = kMostDevices;
    for (size_t n = 0; n < lab.nodes; ++n) {
      const char* card = kCards[Below(kCards.size())];
      const size_t count = std::min<size_t>(size_t{1} << Below(3), left - (lab.nodes - n - 1));
      left -= count;
      absl::StrAppend(&lab.toml, "[[node]]\nname = \"n", n, "\"\ngpus = [{card = \"", card, "\", count = ", count, "}]\n");
      absl::StrAppend(&lab.what, ", ", count, " x ", card);
    }
    lab.model = kModels[Below(kModels.size())];
    lab.dtype = std::array{"float32", "float16", "float16"}[Below(3)];
    lab.seq_len = lab.model.starts_with("gpt2") ? 1024 : int64_t{512} << Below(3);
    lab.global_batch = int64_t{1} << Below(9);
    return lab;
  }

  // Sets of nodes as bits, without the whole and without none: every one up to four nodes; beyond it each node left out, each
  // alone and ten drawn.
  std::vector<uint32_t> Parts(size_t nodes) {
    constexpr size_t kAllParts = 4, kDrawnParts = 10;
    const uint32_t whole = (uint32_t{1} << nodes) - 1;
    std::set<uint32_t> parts;
    if (nodes <= kAllParts) {
      for (uint32_t part = 1; part < whole; ++part) parts.insert(part);
    } else {
      for (size_t n = 0; n < nodes; ++n) {
        parts.insert(uint32_t{1} << n);
        parts.insert(whole & ~(uint32_t{1} << n));
      }
      for (size_t i = 0; i < kDrawnParts; ++i) parts.insert(1 + static_cast<uint32_t>(Below(whole - 1)));
    }
    return {parts.begin(), parts.end()};
  }

 private:
  uint64_t Below(uint64_t count) { return random_() % count; }
  double Part() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

  std::mt19937_64 random_;
};

}  // namespace motley::planner
