// What a program's instructions cost: the graph of programs (program_graph.h) asks this of each, and knows no device. A program
// is a *member's*: a rank's, or in searches that of a class of like units, over blocks of the model. Of a rank each block is a
// unit of the model. They differ in who has what of the model's state, and so in its collectives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "common/model/model_slice.h"
#include "common/program/host_state.h"
#include "common/program/ownership.h"
#include "common/program/program.h"
#include "planner/graph/graph_writer.h"
#include "planner/graph/pass_seconds.h"
#include "planner/graph/program_walk.h"
#include "planner/lowering/class_programs.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// Units and microbatches as operations have them (common/program/operation.h).
struct ComputeSpan {
  TaskKind pass = TaskKind::kForward;
  UnitSegment segment = UnitSegment::kWhole;
  uint32_t operators = 0;
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
  Actor ActorOf(size_t program) const;

  double Seconds(size_t program, const ComputeSpan& what);
  // Behind it, of those who compute it together. Microbatches of one size one after another as one.
  InnerSums SumsInside(std::span<const RankInstruction> members, const ComputeSpan& what);
  // The slowest rank's.
  double OptimizerSeconds(size_t program, const OptimizerStep& op) const;

  virtual int Ring(const RingWork& what) = 0;
  int Scalars();
  // Inside the tensor-parallel unit that the members are.
  int Exchange(std::span<const RankInstruction> members, const AllReduceActivation& op);
  int Exchange(std::span<const RankInstruction> members, const BroadcastActivation& op);
  // What the units of either side have in common, all at once. Units send from and receive at their first rank.
  int HandOver(const HandOverPiece& piece);
  // Who of the program has these samples.
  UnitRange UnitsWith(size_t program, int32_t microbatch, int64_t first, int64_t samples) const;

  // Of each of the program's ranks as much as of its fullest.
  int Copy(size_t program, const OffloadActivation& op);
  int Copy(size_t program, const PrefetchActivation& op);
  int Copy(size_t program, const PrefetchParameters& op);
  int Copy(size_t program, const OffloadGradients& op);
  int Copy(size_t program, const PrefetchOptimizer& op);
  int Copy(size_t program, const OffloadOptimizer& op);

 protected:
  // All but the members and blocks outlive the rates. `members`: by program; `blocks`: what of the model its units are.
  ProgramRates(const Setting& setting, const PlanView& view, const std::vector<Program>& programs, std::vector<ActorView> members,
               std::vector<Part> blocks, GraphWriter* writer);

  // Elements of one of the member's ranks: those that it steps of blocks `unit` to `unit + more` (-1: of all that the program
  // has), or else those that it keeps in between of the blocks' parameters.
  virtual double Owned(size_t program, const RankView& rank, bool stepped, int32_t unit, int32_t more) const = 0;
  // The operators of a layer that a pass runs again; none: those that the plan says of each rank.
  virtual std::optional<OpSet> Again(const ComputeSpan& what) const = 0;

  const Setting& setting() const { return setting_; }
  const PlanView& view() const { return view_; }
  const std::vector<Program>& programs() const { return programs_; }
  const ActorView& member(size_t program) const { return members_[program]; }
  const std::vector<Part>& blocks() const { return blocks_; }
  GraphWriter& writer() const { return writer_; }

 private:
  // A microbatch's, of one unit, as all are alike; where samples are among the units, of which one alone has them all.
  int64_t SizeOf(size_t program, int32_t microbatch) const;
  struct Place {
    int64_t size = 0, begin = 0;
  };
  Place PlaceOf(size_t program, int32_t microbatch, int64_t first, int64_t samples) const;
  // The largest of the ranks of one of the member's units.
  template <typename Of>
  double MostOf(size_t program, Of of) const;

  // Of every unit that the members are; `root` (-1: none) has everything.
  int Inside(std::span<const RankInstruction> members, int64_t bytes, int32_t root = -1);
  int Host(size_t program, double bytes, bool to_host);
  template <typename Op>
  double InputBytes(size_t program, const Op& op) const;
  // Of what waits of the units' state in host memory.
  template <typename Op>
  double StateBytes(size_t program, const Op& op, int64_t (HostState::*part)() const) const;

  const Setting& setting_;
  const PlanView& view_;
  const std::vector<Program>& programs_;
  const std::vector<ActorView> members_;
  const std::vector<Part> blocks_;
  GraphWriter& writer_;
  SecondsTable seconds_;
  std::map<std::tuple<size_t, size_t, int64_t, int32_t>, int> inside_;  // by the first of members, how many, bytes and root
  absl::flat_hash_map<std::array<int64_t, 7>, int> hand_overs_;         // by programs, places in both and samples
  std::map<std::tuple<size_t, double, bool>, int> host_;
};

// A rank each: in the view each unit is an actor of its own. `slices`: of the model, by rank. All arguments outlive the rates.
std::unique_ptr<ProgramRates> RatesOfRanks(const Setting& setting, const PlanView& view, const std::vector<Program>& programs,
                                           const Ownership& ownership, const std::vector<ModelSlice>& slices,
                                           GraphWriter* writer);

// A class of units each.
std::unique_ptr<ProgramRates> RatesOfClasses(const Setting& setting, const PlanView& view, const ClassPrograms& classes,
                                             GraphWriter* writer);

}  // namespace motley::planner
