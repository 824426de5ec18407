// Levels two and three of the Baton search (Yi Zhang, Shuibing He, Ping Chen, "Baton: Orchestrating GPU Memory for LLM Training
// on Heterogeneous Cluster"; the paper gives the idea, docs/inside/strategies/baton.md the algorithm): how a tensor-parallel unit
// of unlike devices shares a layer, and which operators each of its ranks runs again so that its part fits.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "planner/costs/memory_model.h"
#include "planner/setting/setting.h"
#include "planner/strategies/baton/recompute_knapsack.h"

namespace motley::planner {

// What a stage asks of each of its units, whatever devices they have.
struct BatonRole {
  int64_t layers = 1;
  bool embedding = false, head = false;
  int64_t microbatch = 1;
  int64_t in_flight = 1;  // microbatches kept at once
  int64_t replicas = 1;   // units of the stage
  int zero_stage = 0;
  friend bool operator==(const BatonRole&, const BatonRole&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const BatonRole& r) {
    return H::combine(std::move(state), r.layers, r.embedding, r.head, r.microbatch, r.in_flight, r.replicas, r.zero_stage);
  }
};

struct BatonRank {
  int64_t parts = 0;  // partition units of each layer
  OpSet recompute;
};
struct BatonUnit {
  bool fits = false;
  double seconds = 0;            // of one microbatch through the stage, forward and backward, without communication
  std::vector<BatonRank> ranks;  // in the order asked for
  int64_t missing_bytes = 0;     // where it does not fit: of the rank that cannot even hold its smallest part, or of all
  size_t missing_rank = 0;
};

// Remembers what it computed: the same question comes up in many pipelines. Not thread-safe.
class BatonUnitSolver {
 public:
  explicit BatonUnitSolver(const Setting& setting);

  // Attention heads that share keys and values, with the feed-forward columns that go with them: what cannot be cut.
  int64_t parts() const { return parts_; }
  // A number for units of these kinds of rank, ascending: what the questions below are asked with.
  int UnitClass(std::vector<int> kinds);
  // O(parts x ranks) questions of one rank, few for one kind. The reference lives until the next call.
  const BatonUnit& Solve(int unit_class, const BatonRole& role);
  // The same without regard to memory: never more seconds than Solve's.
  double LeastSeconds(int unit_class, const BatonRole& role) const;

 private:
  // A rank of `kind` with so many parts of each layer: the cheapest recomputation that fits.
  struct RankCost {
    bool fits = false;
    double forward = 0, recompute = 0, backward = 0;
    OpSet ops;
    int64_t missing_bytes = 0;
  };
  const RankCost& CostOf(int kind, int64_t parts, size_t ranks, const BatonRole& role);
  const std::vector<RecomputeOption>& Frontier(int kind, int64_t parts, int64_t microbatch, bool with_reduction);
  RankDuty Duty(int kind, int64_t parts, const BatonRole& role) const;
  RankCost Compute(int kind, int64_t parts, size_t ranks, const BatonRole& role);
  // Seconds of the unit when ranks of kinds[i] hold parts[i]: they meet after every product, so the slowest decides each pass.
  // Infinite where one does not fit.
  double UnitSeconds(const std::vector<int>& kinds, const std::vector<int64_t>& parts, const BatonRole& role);
  std::vector<int64_t> SplitParts(const std::vector<int>& kinds, const BatonRole& role);
  bool Improve(const std::vector<int>& kinds, const BatonRole& role, std::vector<int64_t>* parts);
  BatonUnit SolveNew(const std::vector<int>& kinds, const BatonRole& role);

  const Setting& setting_;
  const Costs& costs_;
  int64_t parts_ = 1;
  std::vector<int64_t> usable_;                                                     // by kind
  absl::flat_hash_map<std::tuple<int, int64_t, bool, BatonRole>, RankCost> ranks_;  // kind, parts, alone, role
  std::map<std::tuple<int, int64_t, int64_t, bool>, std::vector<RecomputeOption>> frontiers_;
  std::map<std::vector<int>, int> classes_;
  std::vector<std::vector<int>> kinds_;  // by unit_class
  absl::flat_hash_map<std::pair<int, BatonRole>, BatonUnit> units_;
};

}  // namespace motley::planner
