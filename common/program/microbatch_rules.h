// How far each microbatch has come in each unit: forward, recompute, the two parts of the backward, and the tensor-parallel sums
// behind them (rules 11 to 13 and 22 to 25 of docs/inside/program.md). Part of Validate (program.h).
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/program_check.h"

namespace motley {

// A pass of a microbatch through a unit. Instructions; -1 = not yet.
struct UnitPass {
  int half = -1, done = -1;          // the first of two segments; all of it
  int half_sum = -1, done_sum = -1;  // of what they made, over the tensor-parallel group
  bool begun() const { return half >= 0 || done >= 0; }
};

struct UnitWork {
  UnitPass forward, recompute, input, weight;
  Keep keep = Keep::kAll;
  uint32_t operators = 0;
  int32_t tp_group = -1;   // named by the forward
  int32_t sum_group = -1;  // of sums beside the compute
  int offload = -1, prefetch = -1;
};

// The table of all units held and microbatches, and what holds of each cell alone.
class MicrobatchRules {
 public:
  explicit MicrobatchRules(const ProgramCheck& check)
      : check_(check), work_(check.program.microbatches.size(), std::vector<UnitWork>(check.program.units.size())) {}

  // Of a unit that the rank holds.
  UnitWork& At(int32_t unit, int32_t microbatch) { return work_[microbatch][check_.index.place[unit]]; }
  const UnitWork& At(int32_t unit, int32_t microbatch) const { return work_[microbatch][check_.index.place[unit]]; }

  // The present instruction runs (a segment of) the pass; a backward's segments come in the other order.
  template <typename Op>
  absl::Status Advance(const Op& op, bool backward, UnitPass& pass) const {
    if (op.segment == UnitSegment::kWhole) {
      if (pass.half >= 0) return check_.Error("one of its segments ran alone; run the other one");
      pass.done = check_.at;
      return absl::OkStatus();
    }
    return AdvanceSegment(op.unit, op.more_units, op.segment, backward, pass);
  }
  // That the group may be named; `forward`'s is what the other passes must name.
  template <typename Op>
  absl::Status CheckTp(const Op& op) const {
    if (op.tp_group == -1) return absl::OkStatus();
    if (op.segment != UnitSegment::kWhole) return check_.Error("a segment names no tp group: its sums stand beside it");
    return check_.InGroup(op.tp_group);
  }
  absl::Status SameTp(int32_t tp_group, const UnitWork& work) const;

  absl::Status RunForward(const Forward& f, int32_t unit, int32_t microbatch);
  absl::Status RunRecompute(const Recompute& r, int32_t unit, int32_t microbatch);
  // What Backward and BackwardInput have in common, before Advance.
  absl::Status BeginBackward(int32_t unit, int32_t microbatch) const;
  absl::Status RunWeight(const BackwardWeight& b, int32_t unit, int32_t microbatch);
  absl::Status Check(const AllReduceActivation& op);

  // At the end: that a unit whose sums stand beside it has all of them.
  absl::Status CheckSums(int32_t unit, int32_t microbatch) const;
  // Whether this rank hands over what the unit made: all do but those that follow the leader of a tensor-parallel group.
  bool Sends(int32_t unit, int32_t microbatch) const;

 private:
  absl::Status AdvanceSegment(int32_t unit, int32_t more_units, UnitSegment segment, bool backward, UnitPass& pass) const;
  // That the unit's input is on the device.
  absl::Status InputThere(int32_t unit, int32_t microbatch) const;
  absl::Status Sum(UnitPass& pass, bool half, bool used);

  const ProgramCheck& check_;
  std::vector<std::vector<UnitWork>> work_;  // [microbatch][place of the unit]
};

}  // namespace motley
