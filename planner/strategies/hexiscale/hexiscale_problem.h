// HexiScale's scheduling problem (arXiv 2409.01143 section 4.1, appendix A) as numbers: pipelines of stages, a stage being a
// tensor-parallel group of equal devices of one node, every pipeline with its own microbatch size and part of the batch.
//
//   minimise   max_i Pipeline-Time(i) + Comm-DP
//   Pipeline-Time(i) = sum_j t_ij + (n_i - 1) max_{j = 1 .. S_i} t_ij,   t_ij = Stage(i, j) + Comm-PP-Hop(i, j, j + 1)
//
// Corrected: equation 9 takes its maximum over j = 2 .. S. Otherwise as stated, with measured curves in place of equation 6, the
// links' real paths in place of equations 3-5, embedding and head where they lie, and the memory ledger of all strategies
// (memory_model.h) in place of equation 11. Not thread-safe: it remembers what it was asked.
//
// Equations 5 and 7 let every hop and every stage's synchronisation run as if it were alone. With `shared_links` (tuned) the
// pipelines take at least as long as the busiest link between nodes carries their boundaries, and Comm-DP as long as the busiest
// link carries all rings.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "planner/setting/setting.h"
#include "planner/strategies/hexiscale/hexiscale_layers.h"

namespace motley::planner {

struct HexiscaleStage {
  std::vector<int> devices;  // of one node and kind; their number is the tensor-parallel degree
  int64_t layers = 0;
  bool keep = false;  // activations are kept (tuned); otherwise everything is recomputed, as published
};
struct HexiscalePipeline {
  std::vector<HexiscaleStage> stages;
  int64_t microbatch = 1, batch = 0;
  int64_t microbatches() const { return (batch + microbatch - 1) / microbatch; }
};
struct HexiscaleLayout {
  std::vector<HexiscalePipeline> pipelines;
  int zero_stage = 0;  // between pipelines
};

// What decides a stage's costs.
struct StageShape {
  int node = 0, kind = 0, degree = 1;
  friend auto operator<=>(const StageShape&, const StageShape&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const StageShape& s) {
    return H::combine(std::move(state), s.node, s.kind, s.degree);
  }
};

class HexiscaleProblem {
 public:
  HexiscaleProblem(const Setting& setting, bool shared_links);
  const Setting& setting() const { return setting_; }

  StageShape ShapeOf(std::span<const int> devices) const;
  // Costs of a pipeline's stages in this order. `keep` by stage; empty = none. `replicas` = pipelines; 0: memory is not
  // asked for, most_layers are 0.
  std::vector<StageCost> StageCosts(const std::vector<StageShape>& shapes, int64_t m, int64_t count,
                                    const std::vector<bool>& keep, int replicas, int zero_stage);
  // Bytes that a stage with one layer lacks, 0 when it fits.
  int64_t MissingBytes(const StageShape& shape, int stage, int num_stages, int64_t m, int64_t count, bool keep, int replicas,
                       int zero_stage);

  double PipelineTime(const HexiscalePipeline& pipeline);  // equation 9, corrected
  double SyncSeconds(const HexiscaleLayout& layout);       // equation 7
  double StepSeconds(const HexiscaleLayout& layout);       // equation 10

 private:
  struct Line {
    double latency_seconds = 0, seconds_per_byte = 0;
  };
  struct Ring {
    Line line;
    std::vector<LinkLoad> loads;  // of one byte
  };
  struct Place {    // of a stage in its pipeline, and what else decides its memory
    int after = 0;  // stages behind it
    bool first = false;
    int64_t m = 1, in_flight = 1;
    bool keep = false;
    int replicas = 1, zero_stage = 0;
    int64_t samples = 0;  // of a step, where their tokens count
    bool last() const { return after == 0; }
  };
  Place PlaceOf(int stage, int num_stages, int64_t m, int64_t count, bool keep, int replicas, int zero_stage) const;
  int64_t PeakBytes(const StageShape& shape, const Place& place, int64_t layers) const;
  int64_t MostLayers(const StageShape& shape, const Place& place) const;
  double UnitSeconds(const StageShape& shape, UnitKind unit, int64_t m) const;
  // Seconds of one layer for one microbatch of m samples, both passes, all-reduces of the tensor-parallel group included.
  double LayerSeconds(const StageShape& shape, int64_t m, bool keep);
  // One boundary of so many bytes forward and its gradient backward, the broadcast in the receiving group included (equation 5).
  double HopSeconds(const StageShape& from, const StageShape& to, double bytes);
  // Costs of stages without the hop to the next, of one microbatch size, number of replicas, ZeRO stage and samples.
  using CostsAlone = absl::flat_hash_map<uint64_t, StageCost>;
  const StageCost& CostAlone(const StageShape& shape, const Place& place, CostsAlone* known);
  int ClassOf(const StageShape& shape);
  const Line& AllReduce(int node, int degree);
  Line Hop(int from_node, int to_node);
  const std::vector<LinkLoad>& HopLoads(int from_node, int to_node);
  double HopsSeconds(const HexiscaleLayout& layout);
  Line RingOf(const std::vector<int>& devices) const;
  const Ring& SyncRing(const HexiscaleLayout& layout,
                       const std::vector<size_t>& stage_of);  // by pipeline the stage with the layer
  const std::vector<int>& NodeDevices(int node) const { return setting_.cluster.nodes[node].devices; }

  const Setting& setting_;
  const bool shared_links_;
  std::vector<int64_t> usable_bytes_;              // by kind
  absl::flat_hash_map<StageShape, int> class_of_;  // equal for shapes of equal costs: nodes differ by their links alone
  std::map<std::tuple<int, int, double, double>, int> classes_;
  std::map<std::tuple<int64_t, int, int, int64_t>, CostsAlone> costs_;
  absl::flat_hash_map<std::pair<int, int>, Line> hop_;  // by nodes
  std::map<std::pair<int, int>, Line> all_reduce_;      // by node and degree
  std::map<std::vector<int>, Ring> sync_;
  std::map<std::pair<int, int>, std::vector<LinkLoad>> hop_loads_;  // by nodes, of one byte
};

}  // namespace motley::planner
