// Zorse's latency and memory model (arXiv 2507.10392 section 3.3): what a division into groups, ministages and microbatches
// costs, in closed form. The paper's appendix 5 is not in its text; the formulas derived for it stand in
// docs/inside/strategies/zorse.md.
//
// Deviations: batches are split by the measured curves and not by a linear fit; a group's training state may be unevenly owned
// (tuned); embedding and head count where they lie. Symbols: v = ministages of a group, m = microbatch size.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/costs/memory_model.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// Devices that share layers, and what their links cost.
struct ZorseGroup {
  std::vector<int> devices, kinds;  // ascending; the kind of each
  double slowest_rate = 0;          // bytes a second between its worst connected devices; infinite for one device
  double gather_latency_seconds = 0, gather_seconds_per_byte = 0;  // all-gather of so many assembled bytes, even shares
  double reduce_latency_seconds = 0, reduce_seconds_per_byte = 0;  // reduce-scatter
  bool host_known = false;                                         // all its nodes say how much host memory they have
};

// How a group's devices share the batch in microbatches of at most `microbatch`.
struct ZorseLoad {
  struct Member {
    int64_t count = 0, size = 0, last = 0;  // full microbatches, their size, and the rest (0 = none)
    int64_t batch() const { return count * size + last; }
  };
  bool recompute = true;                             // every layer, in the backward pass: part of its seconds, keeps no tensors
  std::vector<Member> members;                       // by device of the group
  std::vector<size_t> largest;                       // member with the largest batch of each kind
  double forward_seconds = 0, backward_seconds = 0;  // one layer, whole batch, slowest member
  double first_forward_seconds = 0, first_backward_seconds = 0;  // one layer, one microbatch, slowest member
  double layer_seconds() const { return forward_seconds + backward_seconds; }
};

// A complete choice, by stage. Whether a stage recomputes is its load's.
struct ZorseChoice {
  std::vector<const ZorseGroup*> groups;
  std::vector<const ZorseLoad*> loads;
  std::vector<const ZorseLoad*> frugal;  // the same groups' recomputing, where they may take the place of `loads`; or empty
  std::vector<int64_t> layers;
  int64_t ministages = 1, microbatch = 1;
  OffloadKinds offload;
};

// As the paper does (section 3.1.2) where parameters wait on the host; in a job where nothing global decides a step.
bool StepsInTurn(const Setting& setting, const ZorseChoice& choice);

// Whether a choice fits into the devices' and the nodes' memory.
struct ZorseFit {
  int64_t missing_bytes = 0;   // 0: it fits
  int device = -1, node = -1;  // the one that lacks most: a device, or a node's host memory
};

class ZorseModel {
 public:
  explicit ZorseModel(const Setting& setting);

  ZorseGroup Group(const std::vector<int>& devices) const;
  // whole_microbatches: every device gets a number of equal microbatches; otherwise any batch.
  ZorseLoad Split(const ZorseGroup& group, int64_t microbatch, bool whole_microbatches, bool recompute) const;
  // Layers in proportion to speed (`granularity` at a time, at least that many each); empty: too few layers.
  std::vector<int64_t> SplitLayers(const std::vector<const ZorseLoad*>& loads, int64_t granularity) const;
  // Layers so that the slowest stage is as fast as possible within each stage's memory; exact. A stage whose layers do not fit
  // with its load takes the frugal one, if there is one. False: they do not fit, or only with frugal loads everywhere; the choice
  // is then as it was.
  bool SplitLayersByMemory(bool even_shards, ZorseChoice* choice) const;
  double StepSeconds(const ZorseChoice& choice) const;
  ZorseFit Fit(const ZorseChoice& choice, bool even_shards) const;
  // Shares of a stage's sharded state: even, or as even as memory allows. Empty: it does not fit.
  std::vector<double> Shares(const ZorseChoice& choice, size_t stage, bool even_shards) const;

 private:
  using Seconds = std::vector<std::vector<double>>;  // by kind and samples
  struct Room {                                      // of one stage
    bool fits = false;
    int device = -1;
    int64_t missing_bytes = 0;
    std::vector<double> caps;  // by member of `largest`: largest share it can own
  };
  struct StageSeconds {                            // of one ministage
    double forward = 0, backward = 0;              // whole batch, transfers included
    double first_forward = 0, first_backward = 0;  // one microbatch and its way to the next stage
    double gather = 0, reduce = 0, optimizer = 0;
  };
  // The group's devices with these batches; the last ones may be smaller.
  ZorseLoad LoadOf(const ZorseGroup& group, const std::vector<int64_t>& batches, int64_t microbatch, bool recompute) const;
  StageSeconds PriceStage(const ZorseChoice& choice, size_t stage) const;
  RankDuty Duty(const ZorseChoice& choice, size_t stage, int kind, double share) const;
  MemoryByPurpose Memory(const ZorseChoice& choice, size_t stage, size_t member, double share) const;
  Room FindRoom(const ZorseChoice& choice, size_t stage, bool even_shards) const;
  int64_t MostLayers(ZorseChoice* trial, size_t stage, bool even_shards) const;              // 0: not even one a ministage
  double ExtraSeconds(const ZorseLoad& load, const ZorseGroup& group, UnitKind unit) const;  // embedding or head, both passes
  double MemberSeconds(int kind, const ZorseLoad::Member& member, const Seconds& seconds) const;
  ZorseLoad::Member Parts(int64_t batch, int64_t microbatch) const;
  int HostLack(const ZorseChoice& choice, int64_t* missing_bytes) const;  // node, or -1
  double CopySeconds(const ZorseChoice& choice, size_t stage) const;
  double Hidden(double compute_seconds, double transfer_seconds) const;

  const Setting& setting_;
  Seconds forward_, backward_, backward_again_;  // of one layer; the last with its forward run again
  int64_t layer_bytes_ = 0;                      // parameters of a layer in compute dtype
};

}  // namespace motley::planner
