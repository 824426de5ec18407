// What waits in host memory, and the slots of the device into which it comes back: rules 27 to 30 of docs/inside/program.md. Part
// of Validate (program.h).
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/gradient_rules.h"
#include "common/program/microbatch_rules.h"
#include "common/program/parameter_rules.h"
#include "common/program/program_check.h"

namespace motley {

class CopyRules {
 public:
  CopyRules(const ProgramCheck& check, MicrobatchRules& microbatches, ParameterRules& parameters, GradientRules& gradients)
      : check_(check),
        microbatches_(microbatches),
        parameters_(parameters),
        gradients_(gradients),
        slots_(check.program.slots.size()),
        state_(check.program.num_units) {}

  absl::Status Check(const OffloadActivation& op);
  absl::Status Check(const PrefetchActivation& op);
  absl::Status Check(const PrefetchParameters& op) {
    return check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) { return parameters_.Prefetch(op.buffer, unit); });
  }
  absl::Status Check(const OffloadGradients& op);
  absl::Status Check(const PrefetchOptimizer& op);
  absl::Status Check(const OffloadOptimizer& op);

  // That the step of `unit` finds what waits in host memory in `slot`.
  absl::Status Step(int32_t unit, int32_t slot);
  // That what was stepped is in host memory again.
  absl::Status CheckEnd() const;

 private:
  // What a slot was filled with last: inputs of units, or state of units.
  struct Slot {
    int32_t unit = -1, more_units = 0;  // unit -1: nothing yet
    bool state = false;
    int32_t microbatch = 0, more_microbatches = 0;  // of inputs
  };
  // Of a unit. Instructions; -1 = not yet.
  struct UnitState {
    int gradients = -1, prefetch = -1, step = -1, offload = -1;
    int32_t slot = -1;
  };
  // That what the slot holds was used, and that the present copy waits for its last use.
  absl::Status SlotFree(int32_t slot) const;

  const ProgramCheck& check_;
  MicrobatchRules& microbatches_;
  ParameterRules& parameters_;
  GradientRules& gradients_;
  std::vector<Slot> slots_;
  std::vector<UnitState> state_;  // by unit
};

}  // namespace motley
