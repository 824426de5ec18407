// What a program's instructions cost: the graph of programs (program_graph.h) asks this of each, and knows no device. Of ranks'
// programs by the plan's ownership, of classes' by its shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/model/model_slice.h"
#include "common/program/ownership.h"
#include "common/program/program.h"
#include "planner/graph/graph_writer.h"
#include "planner/graph/program_seconds.h"
#include "planner/graph/program_walk.h"
#include "planner/lowering/class_programs.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// Units and microbatches as operations have them (common/program/operation.h).
struct ComputeSpan {
  ComputeWork work;
  int32_t unit = 0, more_units = 0, microbatch = 0, more_microbatches = 0;
};

// Of parameters or gradients, by one of the group's programs. `root` has everything; -1 = each gives or gets its own.
struct RingWork {
  Collective collective = Collective::kAllGather;
  int32_t group = 0, unit = 0, more_units = 0;
  int32_t buffer = 0;   // of parameters, or of gradients
  ArrayRange elements;  // of the program's array
  int32_t root = -1;
  size_t program = 0;
};

// Samples of the global batch, in a microbatch of each side.
struct HandOverPiece {
  size_t from = 0, to = 0;
  int32_t from_microbatch = 0, to_microbatch = 0;
  int64_t first = 0, samples = 0;
};

// So many all-reduces inside a tensor-parallel unit, one after another. `microbatch` is for people.
struct InnerSum {
  int flow = 0;
  double times = 0;
  int32_t microbatch = -1;
};
using InnerSums = absl::InlinedVector<InnerSum, 2>;

// Units [first, last) of the `units` that a program stands for.
struct UnitRange {
  int64_t first = 0, last = 1, units = 1;
  bool all() const { return last - first == units; }
};

// Programs by their place; flows by their number in the graph, each made once.
class ProgramRates {
 public:
  virtual ~ProgramRates() = default;
  virtual Actor ActorOf(size_t program) const = 0;

  virtual double Seconds(size_t program, const ComputeSpan& what) = 0;
  // Behind it, of those who compute it together.
  virtual InnerSums SumsInside(std::span<const RankInstruction> members, const ComputeSpan& what) = 0;
  virtual double OptimizerSeconds(size_t program, const OptimizerStep& op) = 0;

  virtual int Ring(const RingWork& what) = 0;
  virtual int Scalars() = 0;
  virtual int Exchange(std::span<const RankInstruction> members, const AllReduceActivation& op) = 0;
  virtual int Exchange(std::span<const RankInstruction> members, const BroadcastActivation& op) = 0;
  virtual int HandOver(const HandOverPiece& piece) = 0;
  // Who of the program has these samples.
  virtual UnitRange UnitsWith(size_t program, int32_t microbatch, int64_t first, int64_t samples) const = 0;

  virtual int Copy(size_t program, const OffloadActivation& op) = 0;
  virtual int Copy(size_t program, const PrefetchActivation& op) = 0;
  virtual int Copy(size_t program, const OffloadState& op) = 0;
  virtual int Copy(size_t program, const PrefetchState& op) = 0;
};

// A rank each: in the view each unit is an actor of its own. `slices`: of the model, by rank. All arguments outlive the rates.
std::unique_ptr<ProgramRates> RatesOfRanks(const Setting& setting, const PlanView& view, const std::vector<Program>& programs,
                                           const Ownership& ownership, const std::vector<ModelSlice>& slices,
                                           GraphWriter* writer);

// A class of units each.
std::unique_ptr<ProgramRates> RatesOfClasses(const Setting& setting, const PlanView& view, const ClassPrograms& classes,
                                             GraphWriter* writer);

}  // namespace motley::planner
