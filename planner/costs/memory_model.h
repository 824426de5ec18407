// The one memory ledger for plans: peak bytes by purpose of a rank that holds these layers and computes these microbatches under
// this schedule. What the engine runs is engine_memory.h's. Strategies ask it while they search, Evaluate reports it, `motley
// estimate` prints it. Pure, thread-safe, no allocation. docs/inside/simulator.md, "Memory", has the formulas.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/program/offload_kinds.h"
#include "planner/costs/costs.h"
#include "planner/plan/op_set.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// What one rank holds and computes, without names.
struct RankDuty {
  int kind = 0;                   // of device
  int64_t layers = 0;             // of its stage, all ministages together
  int64_t largest_ministage = 1;  // layers of the largest ministage
  int64_t ministages = 1;
  bool embedding = false, head = false;  // the stage holds them
  ScheduleFamily schedule = ScheduleFamily::kLayered;
  int stage = 0, num_stages = 1;
  int zero_stage = 3;
  double share = 1;  // of the sharded state of the stage
  double tp_share = 1;
  double replica_share = 1;        // of the optimizer state (gradients) over pipelines; 1 = not sharded
  bool replica_gradients = false;  // replica_share holds for the gradients too
  OpSet recompute;
  OffloadKinds offload;
  OffloadKinds stage_offload;  // of any rank of its stage; none: as it says itself
  bool steps_in_turn = false;  // a unit is stepped behind its sum; what the engine runs
  bool sums_across = false;    // gradients wait for a sum over several pipelines: no ministage steps right after its backward
  int64_t group_size = 1;      // units that share the state; 1 = nothing to gather
  int64_t in_flight = 0;       // microbatches (of one ministage) kept at once; 0 = what the schedule's formula says
  // The largest microbatch of the neighbouring stages: what one of them hands over may come at once. 0 = there is none.
  int64_t from_previous = 0, from_next = 0;
  int64_t prefetch = 1;  // of what waits in host memory (StagePlan::prefetch)
  int64_t rounds = 0;    // microbatches of the rank of its stage that has most; 0 = not known, several
  int64_t samples = 0;   // of a step, whose tokens lie there; 0 = its microbatches'
};

// Buffers that a stage's units take in turn, in their order: the unit at place p takes number p modulo `count`, at most
// kMostPrefetch + 1. Each is as large as the largest unit that comes into it.
class Turns {
 public:
  // Sizes of the units; 0: the stage has no embedding, no head. Layers are alike, so as many as there are buffers stand for all.
  Turns(int64_t count, int64_t embedding, int64_t layers, int64_t layer, int64_t head) : count_(count) {
    const int64_t first = embedding > 0 ? 1 : 0;
    Put(0, embedding);
    for (int64_t i = 0; i < std::min(layers, count); ++i) Put(first + i, layer);
    Put(first + layers, head);
  }
  int64_t Sum() const { return std::accumulate(largest_.begin(), largest_.end(), int64_t{0}); }
  int64_t Largest() const { return *std::max_element(largest_.begin(), largest_.end()); }

 private:
  void Put(int64_t place, int64_t size) {
    int64_t& largest = largest_[static_cast<size_t>(place % count_)];
    largest = std::max(largest, size);
  }
  const int64_t count_;
  std::array<int64_t, kMostPrefetch + 1> largest_ = {};
};

// `microbatches`: of its unit in one step; empty = stores only.
MemoryByPurpose MemoryOf(const Costs& costs, const RankDuty& duty, const std::vector<int64_t>& microbatches);
// The same for `count` equal microbatches of `size` and one of `last` (0 = none), for searches.
MemoryByPurpose MemoryOf(const Costs& costs, const RankDuty& duty, int64_t count, int64_t size, int64_t last);

// Microbatches, each of one ministage, that a stage keeps at once under a schedule that runs forward and backward in turn:
// 1F1B stages - stage, those that split the backward ministages x stages, interleaved Megatron's 2 (stages - stage - 1) +
// (ministages - 1) stages + 1. `count` microbatches a step bound it; layered and GPipe keep them all.
int64_t InFlight(ScheduleFamily schedule, int stage, int num_stages, int64_t ministages, int64_t count);

// What a rank of `count` microbatches keeps at the peak: microbatches (whole ones, through all ministages) and chunks (of one).
struct Flight {
  int64_t microbatches = 0, chunks = 0;
};
Flight FlightOf(const RankDuty& duty, int64_t count);

}  // namespace motley::planner
